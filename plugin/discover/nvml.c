/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/nvml.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/program_find.h"
#include "lib/child/child.h"
#include "lib/doc/value.h"

#define PROGRAM "drarun-nvml"

const struct nvml_limits nvml_limits_default = {.open = 20000, .ask = 5000, .again = 60000};

struct nvml {
    struct nvml_limits limits;
    struct event_base *base; /* its own: a wait here runs nothing else of the plugin */
    struct event *late;
    char program[PATH_MAX], *library;
    struct child *child; /* NULL: none runs */
    int left;            /* of one that SIGKILL has not ended: no other is started; -1: none */
    bool ready;          /* it has the library */
    int64_t started_ms;
    json_t *answer;                  /* that came; NULL: none yet */
    json_t *gpus;                    /* of the last answer; NULL: there was none */
    bool silent;                     /* and this was logged */
    bool missing;                    /* there is no library yet, or no driver: see `why` */
    bool alone;                      /* nor a GPU, so that nobody needs it */
    char why[256];                   /* "": it was logged */
    char fault[CHILD_SAID_MAX + 64]; /* what the last one did instead of an answer; "" */
};

/* ---- the program ---- */

static int find_program(char path[PATH_MAX], struct drarun_error *err)
{
    struct drarun_error why = {0};
    int rc = program_find(PROGRAM, NULL, path, &why);
    return rc < 0
               ? error_set(err, -rc,
                           "%.300s: install it: without it only what sysfs shows is known of GPUs",
                           why.text)
               : 0;
}

static void on_line(void *arg, const char *text, size_t length)
{
    struct nvml *nvml = arg;
    json_decref(nvml->answer);
    nvml->answer = json_loadb(text, length, 0, NULL);
    if (!nvml->answer)
        nvml->answer = json_null();
}

static void on_end(const struct child_end *end, const struct drarun_error *err, void *arg)
{
    struct nvml *nvml = arg;
    nvml->child = NULL;
    if (err)
        snprintf(nvml->fault, sizeof nvml->fault, "ended (%.200s)", err->text);
    else
        snprintf(nvml->fault, sizeof nvml->fault, "ended (%s %d%s%s)",
                 end->status < 0 ? "signal" : "status", abs(end->status), end->said[0] ? ": " : "",
                 end->said);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg; /* it ends the turn of the loop */
}

static int start(struct nvml *nvml, struct drarun_error *err)
{
    char *argv[] = {nvml->program, nvml->library, NULL};
    const struct child_program program = {
        .argv = argv, .env = environ, .line = on_line}; /* the answers have deadlines */
    nvml->started_ms = clock_ms();
    nvml->ready = false;
    nvml->fault[0] = '\0';
    int rc = child_start(nvml->base, &program, on_end, nvml, &nvml->child);
    return rc < 0 ? error_set(err, -rc, "%s: %s", nvml->program, strerror(-rc)) : 0;
}

static void stop(struct nvml *nvml)
{
    int left = child_kill(nvml->child);
    if (left >= 0) {
        nvml->left = left;
        log_error("NVML: " PROGRAM " hangs in the driver and cannot be killed: no other one is "
                  "started until it has ended");
    }
    nvml->child = NULL;
    nvml->ready = false;
    json_decref(nvml->answer);
    nvml->answer = NULL;
}

/* The next answer; NULL: there was none in time, or the program has ended. */
static json_t *await(struct nvml *nvml, int64_t ms)
{
    int64_t until = clock_ms() + ms, left = ms;
    while (!nvml->answer && nvml->child && left >= 0) {
        struct timeval after = timeval_from_ms(left);
        evtimer_add(nvml->late, &after);
        event_base_loop(nvml->base, EVLOOP_ONCE);
        left = until - clock_ms();
    }
    return TAKE_PTR(nvml->answer);
}

/* ---- whether it answers ---- */

static void tell_silence(struct nvml *nvml, int64_t ms)
{
    if (nvml->silent)
        return;
    nvml->silent = true;
    if (nvml->fault[0])
        log_error("NVML: " PROGRAM " %s: GPUs are published as it described them last, and "
                  "new errors of theirs are not noticed; it is started again every %" PRId64 " s",
                  nvml->fault, nvml->limits.again / 1000);
    else
        log_error("NVML has not answered for %" PRId64 " s: GPUs are published as it described "
                  "them last, and new errors of theirs are not noticed; it is asked again every "
                  "%" PRId64 " s. The driver may hang: see the kernel's log",
                  ms / 1000, nvml->limits.again / 1000);
}

/* The first line of the program: 0; -EAGAIN: it did not come. */
static int begin(struct nvml *nvml, int64_t ms, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *answer = await(nvml, ms);
    const char *why = value_text(answer, "error");
    if (!answer)
        return -EAGAIN;
    if (why) {
        json_int_t code = json_integer_value(json_object_get(answer, "errno"));
        return error_set(err, code > 0 && code < 4096 ? (int)code : EIO, "%s", why);
    }
    if (!json_is_true(json_object_get(answer, "ready")))
        return error_set(err, EPROTO, PROGRAM " began with something else than its first line");
    nvml->ready = true;
    return 0;
}

static void tell_missing(struct nvml *nvml)
{
    if (!nvml->missing || nvml->alone || !nvml->why[0])
        return;
    log_error(
        "NVML: %s: the node's GPUs are published without what it tells: memory, versions, MIG "
        "devices and errors; it is tried again every %" PRId64 " s. A container gets it from "
        "NVIDIA's runtime (plugin.nvidia.runtimeClassName of the chart)",
        nvml->why, nvml->limits.again / 1000);
    nvml->why[0] = '\0';
}

static void tell_found(struct nvml *nvml)
{
    if (nvml->missing)
        log_note("NVML is there now");
    nvml->missing = false;
}

/* Whether it can be asked now. One that was silent is started again, and not waited for. */
static bool is_usable(struct nvml *nvml)
{
    struct drarun_error err = {0};
    if (nvml->child && nvml->ready)
        return true;
    if (nvml->child && begin(nvml, 0, &err) == 0) {
        tell_found(nvml);
        return true;
    }
    if (nvml->missing && nvml->alone)
        return false;
    int64_t open = nvml->child ? nvml->limits.open : 0, again = nvml->limits.again;
    if (clock_ms() - nvml->started_ms < (open > again ? open : again))
        return false;
    stop(nvml);
    if (!child_is_left(&nvml->left) && start(nvml, &err) < 0)
        log_error("NVML: %s", err.text);
    return false;
}

/* A list; a new reference. NULL: no answer. */
static json_t *ask(struct nvml *nvml, const char *what)
{
    char request[16];
    if (!is_usable(nvml))
        return NULL;
    int length = snprintf(request, sizeof request, "%s\n", what);
    int rc = child_write(nvml->child, request, (size_t)length);
    CLEANUP(json_decrefp) json_t *answer = rc == 0 ? await(nvml, nvml->limits.ask) : NULL;
    json_t *list = json_object_get(answer, what);
    if (json_is_array(list)) {
        if (nvml->silent)
            log_note("NVML answers again");
        nvml->silent = false;
        return json_incref(list);
    }
    const char *why = value_text(answer, "error");
    if (why)
        snprintf(nvml->fault, sizeof nvml->fault, "says: %.200s", why);
    else if (answer)
        snprintf(nvml->fault, sizeof nvml->fault, "gave an answer without \"%s\"", what);
    if (rc < 0) /* to nobody: how it has ended comes now */
        json_decref(await(nvml, nvml->limits.ask));
    tell_silence(nvml, nvml->limits.ask);
    stop(nvml);
    return NULL;
}

static int open_library(const char *library, const struct nvml_limits *limits, bool later,
                        struct nvml **ret_nvml, struct drarun_error *err)
{
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return error_set(err, ENOMEM, "NVML: out of memory");
    nvml->limits = limits ? *limits : nvml_limits_default;
    nvml->left = -1;
    nvml->base = event_base_new();
    nvml->late = nvml->base ? evtimer_new(nvml->base, on_late, NULL) : NULL;
    nvml->library = library ? strdup(library) : NULL;
    int rc = nvml->late && (nvml->library || !library) ? find_program(nvml->program, err)
                                                       : error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        rc = start(nvml, err);
    if (rc == 0)
        rc = begin(nvml, nvml->limits.open, err);
    if (rc == -EAGAIN) {
        tell_silence(nvml, nvml->limits.open);
        rc = 0;
    } else if (later && nvml->program[0] && (rc == -ENOENT || rc == -ENODEV)) {
        nvml->missing = nvml->alone = true;
        snprintf(nvml->why, sizeof nvml->why, "%.255s", err->text);
        rc = 0;
    }
    if (rc < 0)
        nvml_close(nvml);
    else
        *ret_nvml = nvml;
    return rc;
}

int nvml_open(const char *library, const struct nvml_limits *limits, struct nvml **ret_nvml,
              struct drarun_error *err)
{
    return open_library(library, limits, false, ret_nvml, err);
}

int nvml_open_later(const char *library, const struct nvml_limits *limits, struct nvml **ret_nvml,
                    struct drarun_error *err)
{
    struct drarun_error own = {0};
    int rc = open_library(library, limits, true, ret_nvml, &own);
    return rc < 0 ? error_set(err, -rc, "%s", own.text) : 0;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    stop(nvml);
    close_fd(&nvml->left);
    json_decref(nvml->gpus);
    if (nvml->late)
        event_free(nvml->late);
    if (nvml->base)
        event_base_free(nvml->base);
    free(nvml->library);
    free(nvml);
}

/* ---- GPUs ---- */

static void keep(const json_t *told, const char *key, char *to, size_t size)
{
    const char *text = value_text(told, key);
    if (text)
        snprintf(to, size, "%s", text);
}

static void keep_gpu(const json_t *told, struct node_gpu *gpu)
{
    const json_t *minor = json_object_get(told, "minor"), *memory = json_object_get(told, "memory");
    keep(told, "product", gpu->product, sizeof gpu->product);
    keep(told, "uuid", gpu->uuid, sizeof gpu->uuid);
    keep(told, "driverVersion", gpu->driver_version, sizeof gpu->driver_version);
    keep(told, "cudaVersion", gpu->cuda_version, sizeof gpu->cuda_version);
    keep(told, "compute", gpu->compute, sizeof gpu->compute);
    keep(told, "architecture", gpu->architecture, sizeof gpu->architecture);
    if (minor)
        gpu->minor = (int32_t)json_integer_value(minor);
    if (memory)
        gpu->memory = (uint64_t)json_integer_value(memory);
    gpu->nvlinks = (uint32_t)json_integer_value(json_object_get(told, "nvlinks"));
    gpu->mig_mode = json_is_true(json_object_get(told, "mig"));
}

static int add_mig(const json_t *told, struct node_devices *devices, size_t parent,
                   struct drarun_error *err)
{
    struct node_device *device = node_devices_add(devices);
    if (!device)
        return error_set(err, ENOMEM, "MIG devices: out of memory");
    *device = devices->list[parent];
    device->kind = NODE_DEVICE_MIG;
    struct node_gpu *gpu = &device->gpu;
    gpu->mig_mode = false;
    gpu->mig_gi = (int32_t)json_integer_value(json_object_get(told, "gi"));
    gpu->mig_ci = (int32_t)json_integer_value(json_object_get(told, "ci"));
    gpu->memory = (uint64_t)json_integer_value(json_object_get(told, "memory"));
    gpu->nvlinks = 0;
    snprintf(gpu->parent_uuid, sizeof gpu->parent_uuid, "%s", devices->list[parent].gpu.uuid);
    gpu->uuid[0] = gpu->mig_profile[0] = '\0';
    keep(told, "uuid", gpu->uuid, sizeof gpu->uuid);
    keep(told, "profile", gpu->mig_profile, sizeof gpu->mig_profile);
    size_t len = strlen(device->name);
    snprintf(device->name + len, sizeof device->name - len, "-mig-%d-%d", gpu->mig_gi, gpu->mig_ci);
    return 0;
}

static int complete_one(const json_t *told, struct node_devices *devices, size_t at,
                        struct drarun_error *err)
{
    const json_t *migs = json_object_get(told, "migs"), *mig;
    size_t i;
    int rc = 0;
    keep_gpu(told, &devices->list[at].gpu);
    json_array_foreach(migs, i, mig) if (rc == 0) rc = add_mig(mig, devices, at, err);
    return rc;
}

/* The library counts so many GPUs that it cannot open. They are those that it has not described,
 * unless there are more of these: GPUs that have come since, or that it may not see. */
static void mark_closed(struct node_devices *devices, size_t gpus, const bool *described,
                        size_t closed)
{
    size_t others = 0;
    for (size_t i = 0; i < gpus; i++)
        others += !described[i];
    for (size_t i = 0; i < gpus && others <= closed; i++)
        devices->list[i].gpu.closed = !described[i];
}

int nvml_complete(struct nvml *nvml, struct node_devices *devices, struct drarun_error *err)
{
    size_t gpus = devices->count, closed = 0; /* MIG devices are added behind */
    cleanup_free bool *described = calloc(gpus + 1, sizeof *described);
    if (!described)
        return error_set(err, ENOMEM, "GPUs: out of memory");
    nvml->alone = gpus == 0;
    json_t *now = ask(nvml, "gpus");
    const json_t *told;
    size_t i;
    int rc = 0;
    if (now) {
        json_decref(nvml->gpus);
        nvml->gpus = now;
    }
    tell_missing(nvml);
    json_array_foreach(nvml->gpus, i, told)
    {
        const char *bus_id = value_text(told, "busID");
        struct pci_addr addr;
        size_t at = 0;
        closed += !bus_id;
        if (rc < 0 || !bus_id || pci_addr_parse(bus_id, &addr, NULL) < 0)
            continue;
        while (at < gpus && pci_addr_compare(devices->list[at].pci.addr, addr) != 0)
            at++;
        if (at < gpus) {
            described[at] = true;
            rc = complete_one(told, devices, at, err);
        }
    }
    mark_closed(devices, gpus, described, closed);
    return rc;
}

/* ---- errors ---- */

void nvml_each_xid(struct nvml *nvml, nvml_xid_fn fn, void *arg)
{
    CLEANUP(json_decrefp) json_t *list = ask(nvml, "xids");
    const json_t *told;
    size_t i;
    json_array_foreach(list, i, told)
    {
        const char *bus_id = value_text(told, "busID");
        struct nvml_xid xid = {.xid = (uint64_t)json_integer_value(json_object_get(told, "xid"))};
        if (!bus_id)
            continue;
        xid.lost = xid.xid == 79;
        snprintf(xid.bus_id, sizeof xid.bus_id, "%s", bus_id);
        fn(&xid, arg);
    }
}
