/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nvml/told.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define MIGS_MAX 64u /* of one GPU */
#define XIDS_MAX 64u /* of one answer */

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

static bool set_address(const struct told *told, nvml_handle handle, json_t *object)
{
    struct pci_addr addr;
    char text[PCI_ADDR_TEXT];
    if (!nvml_library_address(&told->lib, handle, &addr))
        return false;
    pci_addr_format(addr, text);
    json_object_set_new(object, "busID", json_string(text));
    return true;
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
    json_t *gpu = json_object();
    if (!set_address(told, handle, gpu)) {
        json_decref(gpu);
        return NULL;
    }
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

json_t *told_gpus(struct told *told)
{
    unsigned count = 0;
    json_t *list = json_array();
    if (told->lib.f.count(&count) != NVML_OK)
        return list;
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        nvml_handle handle = NULL;
        json_t *gpu = told->lib.f.by_index(i, &handle) == NVML_OK ? gpu_json(told, handle) : NULL;
        if (gpu)
            json_array_append_new(list, gpu);
    }
    return list;
}

/* ---- errors ---- */

static bool listen(struct told *told)
{
    unsigned count = 0, heard = 0;
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
        nvml_handle handle = NULL;
        heard += told->lib.f.by_index(i, &handle) == NVML_OK &&
                 ASK(told, events_add, handle, NVML_EVENT_XID, told->events) == NVML_OK;
    }
    told->deaf = heard == 0;
    return !told->deaf;
}

json_t *told_xids(struct told *told)
{
    json_t *list = json_array();
    bool hears = listen(told);
    while (hears && json_array_size(list) < XIDS_MAX) {
        struct nvml_event event = {0};
        if (ASK(told, events_wait, told->events, &event, 0) != NVML_OK)
            break; /* a timeout: nothing happened; a lost GPU is told as an event of its own Xid */
        json_t *xid = json_object();
        if ((event.type & NVML_EVENT_XID) && set_address(told, event.device, xid)) {
            set_number(xid, "xid", event.data);
            json_array_append(list, xid);
        }
        json_decref(xid);
    }
    return list;
}

void told_done(struct told *told)
{
    if (told->events)
        ASK(told, events_free, told->events);
    nvml_library_close(&told->lib);
}
