/* SPDX-License-Identifier: Apache-2.0 */
/* Does a process use MPI? Asked when N ranks have connected to nothing: if they are MPI programs,
 * each runs alone as a singleton, and the user should be told. */
#ifndef DRARUN_WORKER_MPI_LIBRARY_H
#define DRARUN_WORKER_MPI_LIBRARY_H

#include <stdbool.h>
#include <sys/types.h>

/* True when an MPI library is among the process's mapped files; false also when it cannot be seen.
 */
bool mpi_library_mapped(pid_t pid);

#endif
