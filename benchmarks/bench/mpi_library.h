/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI library of the image, for modules that are linked with none: it is loaded first, with its
 * symbols for all, and says by them whose ABI it has. */
#ifndef DRARUN_BENCH_MPI_LIBRARY_H
#define DRARUN_BENCH_MPI_LIBRARY_H

#include "drarun/error.h"

#define MPI_LIBRARY_VARIABLE "DRARUN_BENCH_LIBMPI" /* names the file, where it is not found */

/* "ompi" (Open MPI and what is made of it) or "mpich" (MPICH, Intel MPI, MVAPICH, Cray MPICH).
 * -ENOENT: there is none, and err names the places. */
int mpi_library_open(const char **ret_abi, struct drarun_error *err);

#endif
