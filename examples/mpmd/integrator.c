/* SPDX-License-Identifier: Apache-2.0 */
/* Integrates the slices of 4 / (1 + x^2) that the coordinator, rank 0, sends. */
#include <mpi.h>
#include <stdio.h>

#include "pi.h"

static double area(const struct pi_slice *slice)
{
    double sum = 0, width = 1.0 / (double)slice->steps;
    for (long i = slice->first; i < slice->end; i++) {
        double x = ((double)i + 0.5) * width;
        sum += 4.0 / (1.0 + x * x);
    }
    return sum * width;
}

int main(int argc, char **argv)
{
    int rank = 0;
    struct pi_slice slice;
    MPI_Comm group; /* of all integrators: for what only they have to say to each other */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        fprintf(stderr, "mpmd: rank 0 must be a pi-coordinator\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_split(MPI_COMM_WORLD, PI_INTEGRATOR, rank, &group);
    for (;;) {
        MPI_Recv(&slice, PI_SLICE_LONGS, MPI_LONG, 0, PI_TAG_SLICE, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (slice.first == slice.end)
            break;
        double sum = area(&slice);
        MPI_Send(&sum, 1, MPI_DOUBLE, 0, PI_TAG_AREA, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&group);
    MPI_Finalize();
    return 0;
}
