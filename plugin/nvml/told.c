/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nvml/told.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define MIGS_MAX 64u /* of one GPU */
#define XIDS_MAX 64u /* of one answer */
#define XID_OFF_THE_BUS 79

#define ASK(told, fn, ...) NVML_ASK(&(told)->lib, fn, __VA_ARGS__)

/* Foreign text: what cannot be printed becomes '?'. */
static void set_text(json_t *object, const char *key, char *text, int code)
{
    text[NVML_TEXT - 1] = '\0';
    if (code != NVML_OK || !text[0])
        return;
    for (char *p = text; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
    json_object_set_new(object, key, json_string(text));
}

static void set_number(json_t *object, const char *key, unsigned long long number)
{
    json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void set_address(json_t *object, struct pci_addr addr)
{
    char text[PCI_ADDR_TEXT];
    pci_addr_format(addr, text);
    json_object_set_new(object, "busID", json_string(text));
}

/* ---- one GPU ---- */

static const char *architecture_name(unsigned id)
{
    static const char *const names[] = {NULL,           NULL,     "Kepler",   "Maxwell",
                                        "Pascal",       "Volta",  "Turing",   "Ampere",
                                        "Ada Lovelace", "Hopper", "Blackwell"};
    return id < ARRAY_LEN(names) ? names[id] : NULL;
}

static void add_versions(const struct told *told, nvml_handle handle, json_t *gpu)
{
    char text[NVML_TEXT] = "";
    int cuda = 0, major = 0, minor = 0;
    unsigned architecture = 0;
    set_text(gpu, "driverVersion", text, ASK(told, driver_version, text, sizeof text));
    if (ASK(told, cuda_version, &cuda) == NVML_OK && cuda > 0) {
        snprintf(text, sizeof text, "%d.%d.0", cuda / 1000 % 1000, cuda % 1000 / 10);
        json_object_set_new(gpu, "cudaVersion", json_string(text));
    }
    if (ASK(told, compute, handle, &major, &minor) == NVML_OK) {
        snprintf(text, sizeof text, "%d.%d.0", major % 1000, minor % 1000);
        json_object_set_new(gpu, "compute", json_string(text));
    }
    if (ASK(told, architecture, handle, &architecture) == NVML_OK &&
        architecture_name(architecture))
        json_object_set_new(gpu, "architecture", json_string(architecture_name(architecture)));
}

/* "1g.5gb" of "NVIDIA A100-SXM4-40GB MIG 1g.5gb" */
static void set_profile(const struct told *told, nvml_handle handle, json_t *mig)
{
    char name[NVML_TEXT] = "", text[NVML_TEXT] = "";
    if (ASK(told, name, handle, name, sizeof name) != NVML_OK)
        return;
    name[NVML_TEXT - 1] = '\0';
    const char *profile = strstr(name, " MIG ");
    snprintf(text, sizeof text, "%s", profile ? profile + 5 : "");
    set_text(mig, "profile", text, NVML_OK);
}

static json_t *mig_json(const struct told *told, nvml_handle handle)
{
    unsigned gi = 0, ci = 0;
    char text[NVML_TEXT] = "";
    struct nvml_mig_attributes attributes = {0};
    if (ASK(told, mig_gi, handle, &gi) != NVML_OK || ASK(told, mig_ci, handle, &ci) != NVML_OK)
        return NULL;
    json_t *mig = json_object();
    set_number(mig, "gi", gi);
    set_number(mig, "ci", ci);
    set_text(mig, "uuid", text, ASK(told, uuid, handle, text, sizeof text));
    set_profile(told, handle, mig);
    if (ASK(told, mig_attributes, handle, &attributes) == NVML_OK)
        set_number(mig, "memory", attributes.memory_mib << 20);
    return mig;
}

static json_t *migs_json(const struct told *told, nvml_handle handle)
{
    unsigned count = 0;
    json_t *list = json_array();
    if (ASK(told, mig_count, handle, &count) != NVML_OK)
        return list;
    for (unsigned i = 0; i < count && i < MIGS_MAX; i++) {
        nvml_handle mig = NULL;
        json_t *json =
            ASK(told, mig_by_index, handle, i, &mig) == NVML_OK ? mig_json(told, mig) : NULL;
        if (json)
            json_array_append_new(list, json);
    }
    return list;
}

static json_t *gpu_json(const struct told *told, nvml_handle handle)
{
    char text[NVML_TEXT] = "";
    struct nvml_memory memory = {0};
    unsigned minor = 0, on = 0, pending = 0, nvlinks = 0;
    struct pci_addr addr;
    if (!nvml_library_address(&told->lib, handle, &addr))
        return NULL;
    json_t *gpu = json_object();
    set_address(gpu, addr);
    set_text(gpu, "product", text, ASK(told, name, handle, text, sizeof text));
    set_text(gpu, "uuid", text, ASK(told, uuid, handle, text, sizeof text));
    if (ASK(told, minor, handle, &minor) == NVML_OK && minor < 10000)
        set_number(gpu, "minor", minor);
    if (ASK(told, memory, handle, &memory) == NVML_OK)
        set_number(gpu, "memory", memory.total);
    add_versions(told, handle, gpu);
    for (unsigned link = 0; link < NVML_NVLINKS_MAX; link++) {
        unsigned active = 0;
        nvlinks += ASK(told, nvlink, handle, link, &active) == NVML_OK && active == 1;
    }
    set_number(gpu, "nvlinks", nvlinks);
    bool mig = ASK(told, mig_mode, handle, &on, &pending) == NVML_OK && on == 1;
    json_object_set_new(gpu, "mig", json_boolean(mig));
    if (mig)
        json_object_set_new(gpu, "migs", migs_json(told, handle));
    return gpu;
}

/* Where it may be the library's rights that are missing, nothing is said of the GPU. */
static json_t *gpu_at(const struct told *told, unsigned index)
{
    nvml_handle handle = NULL;
    int code = told->lib.f.by_index(index, &handle);
    json_t *gpu = code == NVML_OK ? gpu_json(told, handle) : NULL;
    return gpu || code == NVML_NO_PERMISSION ? gpu : json_object();
}

json_t *told_gpus(struct told *told)
{
    unsigned count = 0;
    if (told->lib.f.count(&count) != NVML_OK)
        return NULL;
    json_t *list = json_array();
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        json_t *gpu = gpu_at(told, i);
        if (gpu)
            json_array_append_new(list, gpu);
    }
    return list;
}

/* ---- errors ---- */

static void stop_listening(struct told *told)
{
    if (told->events)
        ASK(told, events_free, told->events);
    told->events = NULL;
    told->gpu_count = 0;
}

/* Where there is no GPU to listen to, there may be one by the next call. */
static bool listen(struct told *told)
{
    unsigned count = 0;
    if (told->events || told->deaf)
        return !told->deaf;
    if (ASK(told, events_new, &told->events) != NVML_OK) {
        told->events = NULL;
        told->deaf = true;
        return false;
    }
    if (told->lib.f.count(&count) != NVML_OK)
        count = 0;
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        struct told_gpu *gpu = &told->gpus[told->gpu_count];
        told->gpu_count +=
            told->lib.f.by_index(i, &gpu->handle) == NVML_OK &&
            nvml_library_address(&told->lib, gpu->handle, &gpu->addr) &&
            ASK(told, events_add, gpu->handle, NVML_EVENT_XID, told->events) == NVML_OK;
    }
    if (told->gpu_count == 0)
        stop_listening(told);
    return told->events;
}

static void add_xid(json_t *list, const struct told_gpu *gpu, unsigned long long number)
{
    json_t *xid = json_object();
    set_address(xid, gpu->addr);
    set_number(xid, "xid", number);
    json_array_append_new(list, xid);
}

static void add_event(const struct told *told, json_t *list, const struct nvml_event *event)
{
    struct told_gpu gpu = {.handle = event->device};
    size_t i = 0;
    if (!(event->type & NVML_EVENT_XID))
        return;
    while (i < told->gpu_count && told->gpus[i].handle != gpu.handle)
        i++;
    if (i < told->gpu_count)
        gpu = told->gpus[i];
    else if (!nvml_library_address(&told->lib, gpu.handle, &gpu.addr))
        return;
    add_xid(list, &gpu, event->data);
}

/* The library says of the whole set that a GPU of it is lost, and not which. It may say nothing
 * else of the others until they have a set of their own. */
static void add_lost(struct told *told, json_t *list)
{
    struct nvml_pci pci = {.bus_id = ""};
    struct nvml_memory memory = {0};
    for (size_t i = 0; i < told->gpu_count; i++)
        if (told->lib.f.pci(told->gpus[i].handle, &pci) == NVML_GPU_IS_LOST ||
            ASK(told, memory, told->gpus[i].handle, &memory) == NVML_GPU_IS_LOST)
            add_xid(list, &told->gpus[i], XID_OFF_THE_BUS);
    stop_listening(told);
}

json_t *told_xids(struct told *told)
{
    json_t *list = json_array();
    while (json_array_size(list) < XIDS_MAX && listen(told)) {
        struct nvml_event event = {0};
        int code = ASK(told, events_wait, told->events, &event, 0);
        if (code == NVML_GPU_IS_LOST)
            add_lost(told, list);
        if (code != NVML_OK)
            break; /* a timeout: nothing happened */
        add_event(told, list, &event);
    }
    return list;
}

void told_done(struct told *told)
{
    stop_listening(told);
    nvml_library_close(&told->lib);
}
