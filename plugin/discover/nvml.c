/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/nvml/library.h"

#define MIGS_MAX 64u /* of one GPU */

struct nvml {
    struct nvml_library lib;
    nvml_event_set events; /* NULL: nobody listens yet */
    bool deaf;             /* the library cannot tell of errors */
};

#define ASK(nvml, fn, ...) NVML_ASK(&(nvml)->lib, fn, __VA_ARGS__)

/* ---- the library ---- */

int nvml_open(const char *library, struct nvml **ret_nvml, struct drarun_error *err)
{
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return error_set(err, ENOMEM, "%s: out of memory", library ? library : NVML_LIBRARY);
    int rc = nvml_library_open(library, &nvml->lib, err);
    if (rc < 0)
        free(nvml);
    else
        *ret_nvml = nvml;
    return rc;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->events)
        ASK(nvml, events_free, nvml->events);
    nvml_library_close(&nvml->lib);
    free(nvml);
}

/* ---- one GPU ---- */

/* Foreign text: what cannot be printed becomes '?'. */
static void keep(char *to, size_t size, char *text, int code)
{
    text[NVML_TEXT - 1] = '\0';
    if (code != NVML_OK || !text[0])
        return;
    for (char *p = text; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
    snprintf(to, size, "%s", text);
}

static const char *architecture_name(unsigned id)
{
    static const char *const names[] = {NULL,           NULL,     "Kepler",   "Maxwell",
                                        "Pascal",       "Volta",  "Turing",   "Ampere",
                                        "Ada Lovelace", "Hopper", "Blackwell"};
    return id < ARRAY_LEN(names) && names[id] ? names[id] : "";
}

static void read_versions(struct nvml *nvml, nvml_handle handle, struct node_gpu *gpu)
{
    char text[NVML_TEXT] = "";
    int cuda = 0, major = 0, minor = 0;
    unsigned architecture = 0;
    keep(gpu->driver_version, sizeof gpu->driver_version, text,
         ASK(nvml, driver_version, text, sizeof text));
    if (ASK(nvml, cuda_version, &cuda) == NVML_OK && cuda > 0)
        snprintf(gpu->cuda_version, sizeof gpu->cuda_version, "%d.%d.0", cuda / 1000 % 1000,
                 cuda % 1000 / 10);
    if (ASK(nvml, compute, handle, &major, &minor) == NVML_OK)
        snprintf(gpu->compute, sizeof gpu->compute, "%d.%d.0", major % 1000, minor % 1000);
    if (ASK(nvml, architecture, handle, &architecture) == NVML_OK)
        snprintf(gpu->architecture, sizeof gpu->architecture, "%s",
                 architecture_name(architecture));
}

static void read_gpu(struct nvml *nvml, nvml_handle handle, struct node_gpu *gpu)
{
    char text[NVML_TEXT] = "";
    struct nvml_memory memory = {0};
    unsigned minor = 0, on = 0, pending = 0;
    keep(gpu->product, sizeof gpu->product, text, ASK(nvml, name, handle, text, sizeof text));
    keep(gpu->uuid, sizeof gpu->uuid, text, ASK(nvml, uuid, handle, text, sizeof text));
    if (ASK(nvml, minor, handle, &minor) == NVML_OK && minor < 10000)
        gpu->minor = (int32_t)minor;
    if (ASK(nvml, memory, handle, &memory) == NVML_OK)
        gpu->memory = memory.total;
    read_versions(nvml, handle, gpu);
    gpu->nvlinks = 0;
    for (unsigned link = 0; link < NVML_NVLINKS_MAX; link++) {
        unsigned active = 0;
        gpu->nvlinks += ASK(nvml, nvlink, handle, link, &active) == NVML_OK && active == 1;
    }
    gpu->mig_mode = ASK(nvml, mig_mode, handle, &on, &pending) == NVML_OK && on == 1;
}

/* ---- its MIG devices ---- */

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb" */
static void read_profile(struct nvml *nvml, nvml_handle handle, struct node_gpu *gpu)
{
    char text[NVML_TEXT] = "", name[NVML_TEXT] = "";
    keep(name, sizeof name, text, ASK(nvml, name, handle, text, sizeof text));
    const char *profile = strstr(name, " MIG ");
    snprintf(gpu->mig_profile, sizeof gpu->mig_profile, "%.31s", profile ? profile + 5 : "");
}

static int add_mig(struct nvml *nvml, nvml_handle handle, struct node_devices *devices,
                   size_t parent, struct drarun_error *err)
{
    unsigned gi = 0, ci = 0;
    char text[NVML_TEXT] = "";
    struct nvml_mig_attributes attributes = {0};
    if (ASK(nvml, mig_gi, handle, &gi) != NVML_OK || ASK(nvml, mig_ci, handle, &ci) != NVML_OK)
        return 0;
    struct node_device *device = node_devices_add(devices);
    if (!device)
        return error_set(err, ENOMEM, "MIG devices: out of memory");
    *device = devices->list[parent];
    device->kind = NODE_DEVICE_MIG;
    struct node_gpu *gpu = &device->gpu;
    gpu->mig_mode = false;
    gpu->mig_gi = (int32_t)gi;
    gpu->mig_ci = (int32_t)ci;
    gpu->memory = 0;
    gpu->nvlinks = 0;
    snprintf(gpu->parent_uuid, sizeof gpu->parent_uuid, "%s", devices->list[parent].gpu.uuid);
    gpu->uuid[0] = '\0';
    keep(gpu->uuid, sizeof gpu->uuid, text, ASK(nvml, uuid, handle, text, sizeof text));
    read_profile(nvml, handle, gpu);
    if (ASK(nvml, mig_attributes, handle, &attributes) == NVML_OK)
        gpu->memory = attributes.memory_mib << 20;
    size_t len = strlen(device->name);
    snprintf(device->name + len, sizeof device->name - len, "-mig-%u-%u", gi, ci);
    return 0;
}

static int add_migs(struct nvml *nvml, nvml_handle handle, struct node_devices *devices,
                    size_t parent, struct drarun_error *err)
{
    unsigned count = 0;
    int rc = 0;
    if (ASK(nvml, mig_count, handle, &count) != NVML_OK)
        return 0;
    for (unsigned i = 0; rc == 0 && i < count && i < MIGS_MAX; i++) {
        nvml_handle mig = NULL;
        if (ASK(nvml, mig_by_index, handle, i, &mig) == NVML_OK)
            rc = add_mig(nvml, mig, devices, parent, err);
    }
    return rc;
}

int nvml_complete(struct nvml *nvml, struct node_devices *devices, struct drarun_error *err)
{
    unsigned count = 0;
    int rc = 0;
    size_t gpus = devices->count; /* MIG devices are added behind */
    if (nvml->lib.f.count(&count) != NVML_OK)
        return 0;
    for (unsigned i = 0; rc == 0 && i < count && i < NVML_GPUS_MAX; i++) {
        nvml_handle handle = NULL;
        struct pci_addr addr;
        size_t at = 0;
        if (nvml->lib.f.by_index(i, &handle) != NVML_OK ||
            !nvml_library_address(&nvml->lib, handle, &addr))
            continue;
        while (at < gpus && pci_addr_compare(devices->list[at].pci.addr, addr) != 0)
            at++;
        if (at == gpus)
            continue;
        read_gpu(nvml, handle, &devices->list[at].gpu);
        if (devices->list[at].gpu.mig_mode)
            rc = add_migs(nvml, handle, devices, at, err);
    }
    return rc;
}

/* ---- errors ---- */

static bool listen(struct nvml *nvml)
{
    unsigned count = 0, heard = 0;
    if (nvml->events || nvml->deaf)
        return !nvml->deaf;
    if (ASK(nvml, events_new, &nvml->events) != NVML_OK) {
        nvml->events = NULL;
        nvml->deaf = true;
        return false;
    }
    if (nvml->lib.f.count(&count) != NVML_OK)
        count = 0;
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        nvml_handle handle = NULL;
        heard += nvml->lib.f.by_index(i, &handle) == NVML_OK &&
                 ASK(nvml, events_add, handle, NVML_EVENT_XID, nvml->events) == NVML_OK;
    }
    nvml->deaf = heard == 0;
    return !nvml->deaf;
}

size_t nvml_xids(struct nvml *nvml, struct nvml_xid *ret_xids, size_t max)
{
    size_t found = 0;
    if (!listen(nvml))
        return 0;
    while (found < max) {
        struct nvml_event event = {0};
        struct pci_addr addr;
        int code = ASK(nvml, events_wait, nvml->events, &event, 0);
        if (code != NVML_OK)
            break; /* a timeout: nothing happened; a lost GPU is told as an event of its own Xid */
        if (!(event.type & NVML_EVENT_XID) ||
            !nvml_library_address(&nvml->lib, event.device, &addr))
            continue;
        struct nvml_xid *xid = &ret_xids[found++];
        *xid = (struct nvml_xid){.xid = event.data, .lost = event.data == 79};
        pci_addr_format(addr, xid->bus_id);
    }
    return found;
}
