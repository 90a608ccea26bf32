/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes of anyone to the port of the metrics, in two pieces: the server answers or closes, and
 * serves the next one. */
#include <event2/event.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/metrics/metrics_server.h"

#define QUIET_TURNS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct event_base *base;
static struct sockaddr_in address;

static void on_text(void *arg, struct buf *out)
{
    (void)arg;
    buf_add_str(out, "answer 42\n");
}

static void serve(void)
{
    static struct metrics_server *server; /* lives as long as the process */
    socklen_t length = sizeof address;
    if (server)
        return;
    int any = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* for a port that is free */
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    base = event_base_new();
    if (!base || any < 0 || bind(any, (struct sockaddr *)&address, length) < 0 ||
        getsockname(any, (struct sockaddr *)&address, &length) < 0)
        abort();
    close(any);
    if (metrics_server_new(base, ntohs(address.sin_port), on_text, NULL, &server, NULL) < 0)
        abort();
}

/* What has come by now is handled. */
static void turn(void)
{
    for (int i = 0; i < QUIET_TURNS; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

/* A reset in place of a close: ports do not wait for stray packets. */
static void hang_up(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
    turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char answer[4096];
    serve();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        abort();
    size_t half = size > 0 ? data[0] % size : 0;
    (void)!send(fd, data, half, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    (void)!send(fd, data + half, size - half, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (n > 0 && (n < 9 || memcmp(answer, "HTTP/", 5) != 0))
        abort();
    hang_up(fd);
    return 0;
}
