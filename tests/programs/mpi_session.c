/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator made from a session's process set, as MPI 4 has it: mpi_session SIZE. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank, size, one = 1, sum = 0;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS ||
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group) != MPI_SUCCESS ||
        MPI_Comm_create_from_group(group, "drarun.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                   &comm) != MPI_SUCCESS)
        return 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (argc < 2 || size != atoi(argv[1]) || sum != size)
        return 1;
    if (rank == 0)
        printf("a session of %d ranks is right\n", size);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
