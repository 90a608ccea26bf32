/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/cuda_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdalign.h>
#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* cudaDeviceProp begins with `char name[256]` in every version and is 1032 bytes long in 12.9. */
#define PROPERTIES_BYTES 8192
#define NAME_BYTES 256

static int find_calls(void *library, const char *name, struct cuda_api *api,
                      struct drarun_error *err)
{
#define FIND(result, call, parameters)                                                             \
    if (!(*(void **)&api->call = dlsym(library, #call)))                                           \
        return error_set(err, ENOSYS, "%s has no %s", name, #call);
    CUDA_CALLS(FIND)
    return 0;
}

/* A runtime says the same of an old driver and of none. */
static int no_driver(const char *name, const struct cuda_api *api, struct drarun_error *err)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int rc =
        driver ? error_set(err, ENODEV, "%s: %s; install a newer driver, or an older CUDA runtime",
                           name, api->cudaGetErrorString(CUDA_OLD_DRIVER))
               : error_set(err, ENODEV,
                           "no NVIDIA driver here: %s; on a node with GPUs the pod needs a "
                           "claim of one",
                           dlerror());
    if (driver)
        dlclose(driver);
    return rc;
}

static int open_one(const char *name, struct cuda_api *ret, struct drarun_error *err)
{
    struct cuda_api api = {0};
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(err, ENOENT, "%s", dlerror());
    int rc = find_calls(library, name, &api, err);
    if (rc < 0)
        return rc;
    int code = api.cudaGetDeviceCount(&api.devices);
    if (code == CUDA_OLD_DRIVER)
        return no_driver(name, &api, err);
    if (code == CUDA_NO_DEVICE || (code == CUDA_SUCCESS && api.devices == 0))
        return error_set(err, ENODEV,
                         "%s: no GPU here (CUDA_VISIBLE_DEVICES=%s); the pod needs a claim of one",
                         name, getenv("CUDA_VISIBLE_DEVICES") ?: "");
    if (code != CUDA_SUCCESS || api.cudaRuntimeGetVersion(&api.version) != CUDA_SUCCESS)
        return error_set(err, ENODEV, "%s: cudaGetDeviceCount: %s", name,
                         api.cudaGetErrorString(code));
    *ret = api;
    return 0;
}

int cuda_api_open(struct cuda_api *ret, struct drarun_error *err)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                        "libcudart.so"};
    struct drarun_error first = {0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct drarun_error here = {0};
        if (open_one(names[i], ret, &here) == 0)
            return 0;
        if (here.code != ENOENT && !first.code) /* the newest one's reason */
            first = here;
    }
    if (first.code)
        return error_set(err, first.code, "%s", first.text);
    return error_set(err, ENOENT,
                     "no CUDA runtime: none of libcudart.so.13, .12, .11.0 and libcudart.so can be "
                     "loaded; install cuda-cudart, or put the folder that holds it into "
                     "LD_LIBRARY_PATH");
}

void cuda_device_name(const struct cuda_api *cuda, int device, char *ret, size_t size)
{
    alignas(16) static char properties[PROPERTIES_BYTES];
    snprintf(ret, size, "%s", "");
    if (cuda->cudaGetDeviceProperties(properties, device) == CUDA_SUCCESS)
        snprintf(ret, size, "%.*s", NAME_BYTES - 1, properties);
}
