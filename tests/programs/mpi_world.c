/* SPDX-License-Identifier: Apache-2.0 */
/* What MPI says of the world that this rank is in; the sum over it is checked. Any MPI compiles it.
 * mpi_world PROGRAM [ARGUMENT]: starts one rank of that, too, which becomes its child. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, sum = 0, length, there = 0, *app = NULL;
    MPI_Comm parent, child;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = 0;
    MPI_Allreduce(&(int){rank + 1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &there);
    MPI_Comm_get_parent(&parent);
    const char *role = getenv("DRARUN_ROLE");
    printf("%s: rank %d of %d, program %d, %s, %s\n", role ? role : "?", rank, size,
           there ? *app : -1, parent == MPI_COMM_NULL ? "launched" : "spawned",
           sum == size * (size + 1) / 2 ? "right" : "wrong");
    if (rank == 0)
        printf("with %s\n", version);
    fflush(stdout);
    if (argc > 1 && parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                       MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&child);
    } else if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
