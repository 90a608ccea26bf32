/* SPDX-License-Identifier: Apache-2.0 */
/* Hands slices of an integral to whichever integrator is free, and checks that they add up to pi.
 * Exit status 0 when they do, 1 when not, 2 when the job has another shape. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#include "pi.h"

#define STEPS 4000000L
#define SLICES 64L

static void send_slice(int to, long index)
{
    struct pi_slice slice = {STEPS * index / SLICES, STEPS * (index + 1) / SLICES, STEPS};
    if (index >= SLICES)
        slice = (struct pi_slice){0};
    MPI_Send(&slice, PI_SLICE_LONGS, MPI_LONG, to, PI_TAG_SLICE, MPI_COMM_WORLD);
}

/* Every integrator's rank is in the world, after the coordinator's. */
static double integrate(int integrators)
{
    double pi = 0;
    long next = 0; /* past the last slice: a word to stop */
    for (int i = 1; i <= integrators; i++)
        send_slice(i, next++);
    for (long received = 0; received < SLICES; received++) {
        double area = 0;
        MPI_Status status;
        MPI_Recv(&area, 1, MPI_DOUBLE, MPI_ANY_SOURCE, PI_TAG_AREA, MPI_COMM_WORLD, &status);
        pi += area;
        send_slice(status.MPI_SOURCE, next++);
    }
    return pi;
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 0, group_size = 0;
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, PI_COORDINATOR, rank, &group);
    MPI_Comm_size(group, &group_size);
    if (rank != 0 || group_size != 1 || ranks < 2) {
        fprintf(stderr, "mpmd: expected one coordinator as rank 0 and integrators after it: "
                        "drarun -n 1 pi-coordinator : -n 3 pi-integrator\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double pi = integrate(ranks - 1);
    double error = fabs(pi - acos(-1.0));
    MPI_Comm_free(&group);
    MPI_Finalize();
    printf("mpmd: 1 coordinator, %d integrators: pi = %.9f, %s\n", ranks - 1, pi,
           error < 1e-9 ? "right" : "wrong");
    return error < 1e-9 ? 0 : 1;
}
