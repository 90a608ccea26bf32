/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/nvml/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static const struct {
    const char *name;
    size_t offset;
    bool needed;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml_functions, init), true},
    {"nvmlShutdown", offsetof(struct nvml_functions, shutdown), true},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml_functions, count), true},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_functions, by_index), true},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct nvml_functions, pci), true},
    {"nvmlErrorString", offsetof(struct nvml_functions, error_text), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml_functions, driver_version), false},
    {"nvmlSystemGetCudaDriverVersion_v2", offsetof(struct nvml_functions, cuda_version), false},
    {"nvmlDeviceGetName", offsetof(struct nvml_functions, name), false},
    {"nvmlDeviceGetUUID", offsetof(struct nvml_functions, uuid), false},
    {"nvmlDeviceGetMinorNumber", offsetof(struct nvml_functions, minor), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml_functions, memory), false},
    {"nvmlDeviceGetArchitecture", offsetof(struct nvml_functions, architecture), false},
    {"nvmlDeviceGetCudaComputeCapability", offsetof(struct nvml_functions, compute), false},
    {"nvmlDeviceGetNvLinkState", offsetof(struct nvml_functions, nvlink), false},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml_functions, mig_mode), false},
    {"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct nvml_functions, mig_count), false},
    {"nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct nvml_functions, mig_by_index), false},
    {"nvmlDeviceGetGpuInstanceId", offsetof(struct nvml_functions, mig_gi), false},
    {"nvmlDeviceGetComputeInstanceId", offsetof(struct nvml_functions, mig_ci), false},
    {"nvmlDeviceGetAttributes_v2", offsetof(struct nvml_functions, mig_attributes), false},
    {"nvmlEventSetCreate", offsetof(struct nvml_functions, events_new), false},
    {"nvmlDeviceRegisterEvents", offsetof(struct nvml_functions, events_add), false},
    {"nvmlEventSetWait_v2", offsetof(struct nvml_functions, events_wait), false},
    {"nvmlEventSetFree", offsetof(struct nvml_functions, events_free), false},
    {"nvmlDeviceGetTotalEccErrors", offsetof(struct nvml_functions, ecc_errors), false},
    {"nvmlDeviceGetNvLinkErrorCounter", offsetof(struct nvml_functions, nvlink_errors), false},
};

static int find_functions(struct nvml_library *library, const char *name, struct drarun_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *found = dlsym(library->handle, symbols[i].name);
        if (!found && symbols[i].needed)
            return error_set(err, ENODEV,
                             "%s has no %s: expected NVIDIA's library of R450 or later", name,
                             symbols[i].name);
        memcpy((char *)&library->f + symbols[i].offset, &found, sizeof found);
    }
    return 0;
}

static int start(struct nvml_library *library, const char *name, struct drarun_error *err)
{
    int rc = find_functions(library, name, err);
    if (rc < 0)
        return rc;
    int code = library->f.init();
    if (code != NVML_OK)
        return error_set(err, ENODEV, "%s: the driver does not answer: %s (%d)", name,
                         library->f.error_text ? library->f.error_text(code) : "error", code);
    library->started = true;
    return 0;
}

int nvml_library_open(const char *name, struct nvml_library *ret_library, struct drarun_error *err)
{
    const char *file = name ? name : NVML_LIBRARY;
    struct nvml_library library = {.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
    int rc = library.handle ? start(&library, file, err) : error_set(err, ENOENT, "%s", dlerror());
    if (rc < 0)
        nvml_library_close(&library);
    else
        *ret_library = library;
    return rc;
}

void nvml_library_close(struct nvml_library *library)
{
    if (library->started)
        library->f.shutdown();
    if (library->handle)
        dlclose(library->handle);
    *library = (struct nvml_library){0};
}

bool nvml_library_address(const struct nvml_library *library, nvml_handle gpu,
                          struct pci_addr *ret_addr)
{
    struct nvml_pci pci = {.bus_id = ""};
    if (library->f.pci(gpu, &pci) != NVML_OK)
        return false;
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    return pci_addr_parse(pci.bus_id, ret_addr, NULL) == 0;
}
