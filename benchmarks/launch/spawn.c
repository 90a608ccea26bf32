/* SPDX-License-Identifier: Apache-2.0 */
/* spawn N: how long MPI_Comm_spawn of N children takes, and that until all of them have answered.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all;
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    int count = argc > 1 ? atoi(argv[1]) : 8;
    double start = MPI_Wtime(), spawned = 0;
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                       MPI_ERRCODES_IGNORE);
        spawned = MPI_Wtime();
    } else {
        inter = parent;
    }
    MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    if (parent == MPI_COMM_NULL)
        printf("spawn %d %.0f %.0f\n", sum, (spawned - start) * 1e9, (MPI_Wtime() - start) * 1e9);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return 0;
}
