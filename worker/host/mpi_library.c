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

static bool is_of_open_mpi(const char *line)
{
    return strstr(line, "/libopen-pal.so");
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

struct search {
    bool (*fits)(pid_t pid);
    bool found;
};

static bool look(pid_t pid, void *arg)
{
    struct search *search = arg;
    search->found = search->fits(pid);
    return !search->found;
}

static bool fits_any(pid_t root, bool (*fits)(pid_t pid))
{
    struct search search = {.fits = fits};
    process_tree_walk(root, look, &search);
    return search.found;
}

static bool has_open_mpi_4(pid_t pid)
{
    return maps_any(pid, is_of_open_mpi_4);
}

bool mpi_library_is_open_mpi_4(pid_t pid)
{
    return fits_any(pid, has_open_mpi_4);
}

static bool has_another(pid_t pid)
{
    return mpi_library_mapped(pid) && !maps_any(pid, is_of_open_mpi);
}

bool mpi_library_is_not_open_mpi(pid_t pid)
{
    return fits_any(pid, has_another);
}
