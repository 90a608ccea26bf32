/* SPDX-License-Identifier: Apache-2.0 */
/* stamp PROGRAM [ARGUMENT...]: becomes the program, with the CLOCK_MONOTONIC time in ns in the
 * variable BENCH_STAMP. What a rank takes from there to its main is the dynamic loader's, not the
 * launcher's. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec t;
    char text[32];
    if (argc < 2)
        return 64;
    clock_gettime(CLOCK_MONOTONIC, &t);
    snprintf(text, sizeof text, "%lld", t.tv_sec * 1000000000LL + t.tv_nsec);
    setenv("BENCH_STAMP", text, 1);
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
