/* SPDX-License-Identifier: Apache-2.0 */
/* All_reduce of a few sizes, for more ranks than CPUs. Rank 0 prints for each size, with the time
 * of one call in ns: crowded SIZE BYTES NS Argument: milliseconds to measure each size for.
 * Compiled with each MPI library by the driver. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST (1024 * 1024)
#define CALLS 5 /* between two looks at the clock */

static int call(const float *in, float *out, int count)
{
    return MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static double measure(const float *in, float *out, int count, double seconds)
{
    int more = 1;
    long calls = 0;
    call(in, out, count);
    double began = MPI_Wtime();
    while (more) {
        for (int i = 0; i < CALLS; i++)
            call(in, out, count);
        calls += CALLS;
        more = MPI_Wtime() - began < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - began) / (double)calls;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {8, 64 * 1024, LARGEST};
    static float in[LARGEST / sizeof(float)], out[LARGEST / sizeof(float)];
    int rank, ranks, wrong = 0;
    double seconds = argc > 1 ? atof(argv[1]) / 1e3 : 0.1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < LARGEST / sizeof(float); i++)
        in[i] = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int count = sizes[i] / (int)sizeof(float);
        double took = measure(in, out, count, seconds);
        wrong |= out[0] != (float)ranks || out[count - 1] != (float)ranks;
        if (rank == 0)
            printf("crowded %d %d %.0f\n", ranks, sizes[i], took * 1e9);
    }
    MPI_Finalize();
    return wrong;
}
