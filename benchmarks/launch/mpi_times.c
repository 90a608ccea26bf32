/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program without work. Prints CLOCK_MONOTONIC in ns at each step:
 *     mpi RANK SIZE started init-begin init-end finalize-begin finalize-end
 * started is when the rank was executed, by stamp. "hold" as argument: stay after MPI_Init, for
 * measuring memory. Compiled with each MPI library by the driver. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank, size;
    char line[256];
    const char *stamp = getenv("BENCH_STAMP");
    long long begin = now_ns(), started = stamp ? atoll(stamp) : begin;
    MPI_Init(&argc, &argv);
    long long up = now_ns();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) {
        printf("ready\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    long long down = now_ns();
    MPI_Finalize();
    int length = snprintf(line, sizeof line, "mpi %d %d %lld %lld %lld %lld %lld\n", rank, size,
                          started, begin, up, down, now_ns());
    return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 1;
}
