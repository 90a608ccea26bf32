/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_bind: each rank prints one line: the CPUs that it may run on before MPI_Init, after it, and
 * according to hwloc; with Open MPI, how many ranks share its core; and the library's name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hwloc.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the hwloc that the MPI library loaded, or else of the system's: their interface is one. */
static void *hwloc_function(const char *name)
{
    void *library = dlopen("libhwloc.so.15", RTLD_NOW);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(3);
    }
    return function;
}

#define HWLOC(name) ((__typeof__(&name))hwloc_function(#name))

static void print_set(char *text, size_t size, hwloc_const_bitmap_t set)
{
    HWLOC(hwloc_bitmap_list_snprintf)(text, size, set);
}

static void kernel_cpus(char *text, size_t size)
{
    cpu_set_t cpus;
    hwloc_bitmap_t set = HWLOC(hwloc_bitmap_alloc)();
    if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
        exit(3);
    for (unsigned i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &cpus))
            HWLOC(hwloc_bitmap_set)(set, i);
    print_set(text, size, set);
    HWLOC(hwloc_bitmap_free)(set);
}

static void hwloc_cpus(char *text, size_t size)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t set = HWLOC(hwloc_bitmap_alloc)();
    if (HWLOC(hwloc_topology_init)(&topology) < 0 || HWLOC(hwloc_topology_load)(topology) < 0 ||
        HWLOC(hwloc_get_cpubind)(topology, set, HWLOC_CPUBIND_PROCESS) < 0)
        exit(3);
    print_set(text, size, set);
    HWLOC(hwloc_topology_destroy)(topology);
    HWLOC(hwloc_bitmap_free)(set);
}

#ifdef OPEN_MPI
/* The ranks that the library believes to share a core with this one. */
static int ranks_on_this_core(void)
{
    MPI_Comm comm;
    int size = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, OMPI_COMM_TYPE_CORE, 0, MPI_INFO_NULL, &comm);
    MPI_Comm_size(comm, &size);
    MPI_Comm_free(&comm);
    return size;
}
#endif

int main(int argc, char **argv)
{
    static char before[1024], after[1024], hwloc[1024], version[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, core = 0, length;
    kernel_cpus(before, sizeof before);
    MPI_Init(&argc, &argv);
    kernel_cpus(after, sizeof after);
    hwloc_cpus(hwloc, sizeof hwloc);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef OPEN_MPI
    core = ranks_on_this_core();
#endif
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    printf("%d %s %s %s %d %s\n", rank, before, after, hwloc, core, version);
    MPI_Finalize();
    return 0;
}
