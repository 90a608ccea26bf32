/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/mpi_library.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "worker/host/process_tree.h"

/* Open MPI and Intel MPI: libmpi.so.N; MPICH: libmpich.so.N or libmpi.so.N (wheel). */
static bool is_mpi_library(const char *line)
{
    return strstr(line, "/libmpi.so") || strstr(line, "/libmpich.so") ||
           strstr(line, "/libmpi_cray.so");
}

/* Open MPI 5 has no such library. */
static bool is_of_open_mpi_4(const char *line)
{
    return strstr(line, "/libopen-rte.so");
}

static bool maps_any(pid_t pid, bool (*is_wanted)(const char *line))
{
    char path[64], line[4352];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    cleanup_file FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps))
        if (is_wanted(line))
            return true;
    return false;
}

bool mpi_library_mapped(pid_t pid)
{
    return maps_any(pid, is_mpi_library);
}

static bool look_for_open_mpi_4(pid_t pid, void *arg)
{
    *(bool *)arg = maps_any(pid, is_of_open_mpi_4);
    return !*(bool *)arg;
}

bool mpi_library_is_open_mpi_4(pid_t pid)
{
    bool found = false;
    process_tree_walk(pid, look_for_open_mpi_4, &found);
    return found;
}
