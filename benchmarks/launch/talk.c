/* SPDX-License-Identifier: Apache-2.0 */
/* talk BYTES: writes at least so many bytes of lines to stdout, as a program does whose stdout is
 * a pipe: in blocks that end within lines. A line is "NAME NUMBER LENGTH xxx...\n"; NAME is a
 * random word of this process, NUMBER counts from 0, LENGTH is that of the x. drain reads them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int main(int argc, char **argv)
{
    unsigned long long left, number = 0, name;
    unsigned random = 1;
    char line[512];
    if (argc != 2)
        return 64;
    left = strtoull(argv[1], NULL, 10);
    if (getrandom(&name, sizeof name, 0) != sizeof name)
        return 1;
    while (left > 0) {
        random = random * 1103515245U + 12345;
        int length = (int)(random >> 16) % 160;
        int head = snprintf(line, sizeof line, "%016llx %llu %d ", name, number++, length);
        memset(line + head, 'x', (size_t)length);
        line[head + length] = '\n';
        size_t size = (size_t)(head + length + 1);
        if (fwrite(line, 1, size, stdout) != size)
            return 1;
        left = left > size ? left - size : 0;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
