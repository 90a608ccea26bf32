/* SPDX-License-Identifier: Apache-2.0 */
/* Which MPI library a process uses, by its mapped files. What cannot be seen, or is linked
 * statically, is none. */
#ifndef DRARUN_WORKER_MPI_LIBRARY_H
#define DRARUN_WORKER_MPI_LIBRARY_H

#include <stdbool.h>
#include <sys/types.h>

/* Any. Asked when N ranks have connected to nothing: if they are MPI programs, each runs alone as a
 * singleton, and the user should be told. */
bool mpi_library_mapped(pid_t pid);
/* Open MPI 4 or older, in the process or in one below it. */
bool mpi_library_is_open_mpi_4(pid_t pid);
/* One of another kind, such as MPICH, in the process or in one below it. */
bool mpi_library_is_not_open_mpi(pid_t pid);

#endif
