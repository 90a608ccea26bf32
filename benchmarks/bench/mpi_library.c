/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/mpi_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* libmpi.so.12 is MPICH's, Intel MPI's and, before 2.0, Open MPI's: symbols decide, not names. */
static const char *const names[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12",
                                    "libmpi.so.20", "libmpi.so"};

/* Where images keep libraries that their loader does not search. */
static const char *const folders[] = {
    "/usr/local/mpi/lib",
    "/opt/hpcx/ompi/lib",
    "/opt/amazon/openmpi/lib64",
    "/opt/amazon/openmpi/lib",
    "/usr/lib64/openmpi/lib",
    "/usr/lib64/mpich/lib",
    "/opt/intel/oneapi/mpi/latest/lib",
};

static void *load(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static void *load_of_folder(const char *folder, const char *below)
{
    char path[PATH_MAX];
    void *library = NULL;
    for (size_t i = 0; !library && i < ARRAY_LEN(names); i++) {
        int n = snprintf(path, sizeof path, "%s%s/%s", folder, below, names[i]);
        if (n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0)
            library = load(path);
    }
    return library;
}

/* The mpirun that the image's users get: its library lies beside it, if anywhere of its own. */
static void *load_of_mpirun(void)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        size_t length = strcspn(at, ":");
        char program[PATH_MAX], real[PATH_MAX];
        int n = snprintf(program, sizeof program, "%.*s/mpirun", (int)length, at);
        at += length + (at[length] == ':');
        if (n < 0 || (size_t)n >= sizeof program || access(program, X_OK) < 0 ||
            !realpath(program, real))
            continue;
        *strrchr(real, '/') = '\0';
        void *library = load_of_folder(real, "/../lib");
        return library ? library : load_of_folder(real, "/../lib64");
    }
    return NULL;
}

static void *load_any(void)
{
    void *library = load_of_mpirun();
    for (size_t i = 0; !library && i < ARRAY_LEN(names); i++)
        library = load(names[i]);
    for (size_t i = 0; !library && i < ARRAY_LEN(folders); i++)
        library = load_of_folder(folders[i], "");
    return library;
}

int mpi_library_open(const char **ret_abi, struct drarun_error *err)
{
    const char *named = getenv(MPI_LIBRARY_VARIABLE);
    void *library = named ? load(named) : load_any();
    if (!library && named)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOENT, MPI_LIBRARY_VARIABLE ": %s",
                          dlerror());
    if (!library)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOENT,
                          "backend mpi: no MPI library: none of libmpi.so.40, libmpi.so.12 and "
                          "libmpich.so.12 beside mpirun or where the loader searches; take an "
                          "image with an MPI, name its libmpi in " MPI_LIBRARY_VARIABLE
                          ", or measure NCCL with --backend nccl");
    if (!dlsym(library, "MPI_Init"))
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOSYS,
                          "backend mpi: the library that was loaded has no MPI_Init%s%s",
                          named ? ": " : "", named ? named : "");
    *ret_abi = dlsym(library, "ompi_mpi_comm_world") ? "ompi" : "mpich";
    return 0;
}
