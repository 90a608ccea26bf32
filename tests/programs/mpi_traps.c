/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_traps: MPI_Init and MPI_Finalize as in a program made with gfortran -ffpe-trap=invalid,zero.
 * mpi_traps flags: without traps, and then prints the exceptions that Fortran's STOP would name. */
#define _GNU_SOURCE
#include <fenv.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc == 1)
        feenableexcept(FE_INVALID | FE_DIVBYZERO);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    printf("%x\n", fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW));
    return 0;
}
