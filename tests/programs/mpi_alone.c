/* SPDX-License-Identifier: Apache-2.0 */
/* Says how many ranks it sees, and stays long enough to be looked at. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("alone: %d of %d\n", rank + 1, size);
    fflush(stdout);
    sleep(1);
    MPI_Finalize();
    return 0;
}
