/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/mpi_library.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* Open MPI and Intel MPI: libmpi.so.N; MPICH: libmpich.so.N or libmpi.so.N (wheel). */
static bool is_mpi_library(const char *line)
{
    return strstr(line, "/libmpi.so") || strstr(line, "/libmpich.so") ||
           strstr(line, "/libmpi_cray.so");
}

bool mpi_library_mapped(pid_t pid)
{
    char path[64], line[4352];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    cleanup_file FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps))
        if (is_mpi_library(line))
            return true;
    return false;
}
