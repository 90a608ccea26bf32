/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/nccl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "lib/base/error.h"

void nccl_version_text(int version, char *ret, size_t size)
{
    int unit = version < 10000 ? 1000 : 10000; /* until 2.8: 2804, since then 20905 */
    snprintf(ret, size, "%d.%d.%d", version / unit, version % unit / 100, version % 100);
}

int nccl_api_open(struct nccl_api *ret, struct drarun_error *err)
{
    struct nccl_api api = {0};
    char version[24], oldest[24];
    const char *missing = NULL;
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(err, ENOENT,
                         "no NCCL: %s; install libnccl2, or put the folder that holds it into "
                         "LD_LIBRARY_PATH",
                         dlerror());
#define FIND(result, name, parameters)                                                             \
    *(void **)&api.name = dlsym(library, #name);                                                   \
    missing = !api.name && !missing ? #name : missing;
#define FIND_NEWER(result, name, parameters) *(void **)&api.name = dlsym(library, #name);
    NCCL_CALLS(FIND)
    NCCL_NEWER_CALLS(FIND_NEWER)
    nccl_version_text(NCCL_OLDEST, oldest, sizeof oldest);
    if (!api.ncclGetVersion || api.ncclGetVersion(&api.version) != NCCL_SUCCESS)
        return error_set(err, ENOSYS, "libnccl.so.2 does not say its version: it is not NCCL");
    nccl_version_text(api.version, version, sizeof version);
    if (api.version < NCCL_OLDEST)
        return error_set(err, EPROTO, "libnccl.so.2 is NCCL %s: expected %s or newer", version,
                         oldest);
    if (missing)
        return error_set(err, ENOSYS, "libnccl.so.2 (NCCL %s) has no %s", version, missing);
    api.stand_in = dlsym(library, NCCL_STAND_IN) != NULL;
    *ret = api;
    return 0;
}
