/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 for machines without NVIDIA's driver: GPUs as a file tells, a line each,
 * which the variable NVML_STAND_IN names:
 *
 *     gpu ADDRESS UUID MINOR MIB NVLINKS NAME...
 *     mig UUID GI CI MIB NAME...              of the gpu above, which is then in MIG mode
 *     xid ADDRESS NUMBER                      an event that waits
 *     ecc ADDRESS FIRST MORE                  uncorrected errors: at first, and with each question
 * more nvlink ADDRESS LINK FIRST MORE          the same of a link's replays fail CODE of nvmlInit
 *
 * A file of that name with .pids behind it gets the process of each nvmlInit, a line each.
 *
 * While a file of that name with .hang behind it is there, the count of GPUs never comes, as where
 * a driver hangs; with .deny, it fails; with .crash, the process ends; with .talk, the library
 * writes to stdout. A file with .lost behind it, "ADDRESS WORD", says that this GPU is lost: the
 * library answers so whatever it is asked about it; where the word is "event", there is an event
 * with Xid 79 first.
 *
 * Errors as NVML API reference, nvmlReturn_t. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/nvml/abi.h"

/* NVIDIA's header, which declares them, is not there. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define ITEMS 64

struct item {
    char address[32], uuid[64], name[96];
    unsigned minor, nvlinks, gi, ci;
    unsigned long long mib;
    struct item *parent;
};

static struct {
    struct item items[ITEMS];
    size_t count;
    struct {
        char address[32];
        unsigned long long number;
    } xids[ITEMS];
    struct errors {
        char address[32];
        unsigned link; /* ECC: of none */
        unsigned long long value, more;
    } errors[ITEMS];
    size_t error_count;
    size_t xid_count, xid_next;
    bool told_lost;
} all;

static nvml_handle handle_of(struct item *item)
{
    return (nvml_handle)(void *)item;
}

static struct item *item_of(nvml_handle handle)
{
    return (struct item *)(void *)handle;
}

#define NO_LINK 1000u

static bool read_errors(const char *line)
{
    struct errors e = {.link = NO_LINK};
    if (all.error_count == ITEMS ||
        (sscanf(line, "ecc %31s %llu %llu", e.address, &e.value, &e.more) != 3 &&
         sscanf(line, "nvlink %31s %u %llu %llu", e.address, &e.link, &e.value, &e.more) != 4))
        return false;
    all.errors[all.error_count++] = e;
    return true;
}

static void read_line(const char *line, int *code)
{
    struct item item = {.address = ""};
    if (all.count == ITEMS || all.xid_count == ITEMS)
        return;
    if (sscanf(line, "gpu %31s %63s %u %llu %u %95[^\n]", item.address, item.uuid, &item.minor,
               &item.mib, &item.nvlinks, item.name) == 6)
        all.items[all.count++] = item;
    else if (all.count > 0 && sscanf(line, "mig %63s %u %u %llu %95[^\n]", item.uuid, &item.gi,
                                     &item.ci, &item.mib, item.name) == 5) {
        struct item *last = &all.items[all.count - 1];
        item.parent = last->parent ? last->parent : last;
        all.items[all.count++] = item;
    } else if (sscanf(line, "xid %31s %llu", all.xids[all.xid_count].address,
                      &all.xids[all.xid_count].number) == 2)
        all.xid_count++;
    else if (!read_errors(line))
        sscanf(line, "fail %d", code);
}

static void tell_pid(const char *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s.pids", file);
    FILE *pids = fopen(path, "ae");
    if (!pids)
        return;
    fprintf(pids, "%d\n", (int)getpid());
    fclose(pids);
}

int nvmlInit_v2(void)
{
    char line[512];
    int code = 0;
    const char *path = getenv("NVML_STAND_IN");
    FILE *file = path ? fopen(path, "re") : NULL;
    memset(&all, 0, sizeof all);
    while (file && fgets(line, sizeof line, file))
        read_line(line, &code);
    if (file) {
        fclose(file);
        tell_pid(path);
    }
    return code;
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "580.126.09");
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13010;
    return 0;
}

/* ---- GPUs ---- */

static struct item *nth(const struct item *parent, unsigned index)
{
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i].parent == parent && index-- == 0)
            return &all.items[i];
    return NULL;
}

static bool is_told(const char *suffix)
{
    char path[512];
    const char *file = getenv("NVML_STAND_IN");
    snprintf(path, sizeof path, "%s%s", file ? file : "", suffix);
    return file && access(path, F_OK) == 0;
}

/* The GPU that is lost, NULL: none. */
static struct item *find_lost(char ret_word[16])
{
    char path[512], address[32] = "";
    const char *file = getenv("NVML_STAND_IN");
    snprintf(path, sizeof path, "%s.lost", file ? file : "");
    FILE *lost = file ? fopen(path, "re") : NULL;
    bool whole = lost && fscanf(lost, "%31s %15s", address, ret_word) == 2;
    if (lost)
        fclose(lost);
    for (size_t i = 0; whole && i < all.count; i++)
        if (strcmp(all.items[i].address, address) == 0)
            return &all.items[i];
    return NULL;
}

static bool is_lost(nvml_handle handle)
{
    char word[16] = "";
    return find_lost(word) == item_of(handle);
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    while (is_told(".hang"))
        pause();
    if (is_told(".crash"))
        _exit(3);
    if (is_told(".deny"))
        return 999;
    if (is_told(".talk"))
        puts("a library that talks");
    *count = 0;
    while (nth(NULL, *count))
        ++*count;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_handle *handle)
{
    *handle = handle_of(nth(NULL, index));
    if (!*handle)
        return NVML_NOT_FOUND;
    return is_lost(*handle) ? NVML_GPU_IS_LOST : 0;
}

int nvmlDeviceGetPciInfo_v3(nvml_handle handle, struct nvml_pci *pci)
{
    if (is_lost(handle))
        return NVML_GPU_IS_LOST;
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000%.27s", item_of(handle)->address);
    return 0;
}

int nvmlDeviceGetName(nvml_handle handle, char *text, unsigned size)
{
    snprintf(text, size, "%s", item_of(handle)->name);
    return 0;
}

int nvmlDeviceGetUUID(nvml_handle handle, char *text, unsigned size)
{
    snprintf(text, size, "%s", item_of(handle)->uuid);
    return 0;
}

int nvmlDeviceGetMinorNumber(nvml_handle handle, unsigned *minor)
{
    *minor = item_of(handle)->minor;
    return 0;
}

int nvmlDeviceGetMemoryInfo(nvml_handle handle, struct nvml_memory *memory)
{
    if (is_lost(handle))
        return NVML_GPU_IS_LOST;
    memory->total = item_of(handle)->mib << 20;
    return 0;
}

int nvmlDeviceGetArchitecture(nvml_handle handle, unsigned *architecture)
{
    (void)handle;
    *architecture = 10;
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(nvml_handle handle, int *major, int *minor)
{
    (void)handle;
    *major = 10;
    *minor = 0;
    return 0;
}

int nvmlDeviceGetNvLinkState(nvml_handle handle, unsigned link, unsigned *active)
{
    *active = link < item_of(handle)->nvlinks;
    return 0;
}

/* ---- errors ---- */

/* Without a line: none, ever. */
static unsigned long long errors_of(nvml_handle handle, unsigned link)
{
    for (size_t i = 0; i < all.error_count; i++) {
        struct errors *e = &all.errors[i];
        if (e->link != link || strcmp(e->address, item_of(handle)->address) != 0)
            continue;
        unsigned long long value = e->value;
        e->value += e->more;
        return value;
    }
    return 0;
}

int nvmlDeviceGetTotalEccErrors(nvml_handle handle, int kind, int since, unsigned long long *count)
{
    if (kind != NVML_ECC_UNCORRECTED || since != NVML_ECC_SINCE_LOADED)
        return NVML_NOT_SUPPORTED;
    *count = errors_of(handle, NO_LINK);
    return 0;
}

int nvmlDeviceGetNvLinkErrorCounter(nvml_handle handle, unsigned link, int counter,
                                    unsigned long long *count)
{
    if (link >= item_of(handle)->nvlinks)
        return NVML_NOT_SUPPORTED;
    *count = counter == NVML_NVLINK_REPLAY ? errors_of(handle, link) : 0;
    return 0;
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(nvml_handle handle, unsigned *now, unsigned *pending)
{
    *now = *pending = nth(item_of(handle), 0) != NULL;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(nvml_handle handle, unsigned *count)
{
    (void)handle;
    *count = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml_handle handle, unsigned index, nvml_handle *mig)
{
    *mig = handle_of(nth(item_of(handle), index));
    return *mig ? 0 : NVML_NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(nvml_handle handle, unsigned *id)
{
    *id = item_of(handle)->gi;
    return 0;
}

int nvmlDeviceGetComputeInstanceId(nvml_handle handle, unsigned *id)
{
    *id = item_of(handle)->ci;
    return 0;
}

int nvmlDeviceGetAttributes_v2(nvml_handle handle, struct nvml_mig_attributes *attributes)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->memory_mib = item_of(handle)->mib;
    return 0;
}

/* ---- events ---- */

int nvmlEventSetCreate(nvml_event_set *set)
{
    *set = (nvml_event_set)(void *)&all;
    return 0;
}

int nvmlDeviceRegisterEvents(nvml_handle handle, unsigned long long types, nvml_event_set set)
{
    (void)handle, (void)types, (void)set;
    return 0;
}

static int wait_for_lost(struct nvml_event *event)
{
    char word[16] = "";
    struct item *lost = find_lost(word);
    if (!lost)
        return NVML_TIMEOUT;
    if (strcmp(word, "event") != 0)
        return NVML_GPU_IS_LOST;
    if (all.told_lost)
        return NVML_TIMEOUT;
    all.told_lost = true;
    *event = (struct nvml_event){.device = handle_of(lost), .type = NVML_EVENT_XID, .data = 79};
    return 0;
}

int nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned ms)
{
    (void)set, (void)ms;
    if (all.xid_next == all.xid_count)
        return wait_for_lost(event);
    memset(event, 0, sizeof *event);
    event->type = NVML_EVENT_XID;
    event->data = all.xids[all.xid_next].number;
    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.items[i].address, all.xids[all.xid_next].address) == 0)
            event->device = handle_of(&all.items[i]);
    all.xid_next++;
    return 0;
}

int nvmlEventSetFree(nvml_event_set set)
{
    (void)set;
    return 0;
}
