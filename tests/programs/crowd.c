/* SPDX-License-Identifier: Apache-2.0 */
/* crowd PORT COUNT [HEX]: so many connections to that port of the loopback, on each of which it
 * says these bytes. Says "there" and stays. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    unsigned char said[4096];
    size_t length = 0;
    const char *hex = argc > 3 ? argv[3] : "";
    struct rlimit files = {4096, 4096};
    if (argc < 3)
        return 64;
    setrlimit(RLIMIT_NOFILE, &files);
    while (length < sizeof said && sscanf(hex + 2 * length, "%2hhx", &said[length]) == 1)
        length++;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)atoi(argv[1])),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int i = 0; i < atoi(argv[2]); i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
            perror("crowd");
            return 1;
        }
        send(fd, said, length, MSG_NOSIGNAL);
    }
    puts("there");
    fflush(stdout);
    for (;;)
        pause();
}
