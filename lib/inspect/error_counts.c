/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/inspect/error_counts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/root.h"

#define DEVICES_MAX 4096u

void error_counts_done(struct error_counts *counts)
{
    free(counts->list);
    *counts = (struct error_counts){0};
}

void error_counts_add(struct error_counts *counts, uint64_t value, const char *format, ...)
{
    va_list arguments;
    struct error_counter *list =
        array_room(counts->list, counts->count, &counts->cap, sizeof *list);
    if (!list) {
        counts->failed = true;
        return;
    }
    counts->list = list;
    struct error_counter *counter = &counts->list[counts->count++];
    counter->value = value;
    va_start(arguments, format);
    vsnprintf(counter->name, sizeof counter->name, format, arguments);
    va_end(arguments);
}

/* Those of `names` that the folder has, each as "WHAT NAME"; whether it has any. */
static bool add_folder(int root, const char *folder, const char *what, const char *const names[],
                       size_t count, struct error_counts *counts)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        char path[512], text[32], *end;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (root_read(root, path, text, sizeof text) <= 0)
            continue;
        uint64_t value = strtoull(text, &end, 10);
        if (end == text)
            continue;
        error_counts_add(counts, value, "%s %s", what, names[i]);
        any = true;
    }
    return any;
}

static unsigned add_device(int root, const char *device, struct error_counts *counts)
{
    static const char *const names[] = {
        "symbol_error",    "link_error_recovery",         "link_downed",
        "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"};
    CLEANUP(strlist_done) struct strlist ports = STRLIST_INIT;
    unsigned told = 0;
    char path[256], what[96];
    snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports", device);
    root_list(root, path, DEVICES_MAX, &ports, NULL);
    for (size_t i = 0; i < ports.count; i++) {
        snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports/%.20s/counters", device,
                 ports.items[i]);
        snprintf(what, sizeof what, "%.60s port %.20s", device, ports.items[i]);
        told += add_folder(root, path, what, names, ARRAY_LEN(names), counts);
    }
    return told;
}

unsigned error_counts_of_ports(int root, struct error_counts *counts)
{
    CLEANUP(strlist_done) struct strlist devices = STRLIST_INIT;
    unsigned told = 0;
    root_list(root, "sys/class/infiniband", DEVICES_MAX, &devices, NULL);
    for (size_t i = 0; i < devices.count; i++)
        told += add_device(root, devices.items[i], counts);
    return told;
}

unsigned error_counts_of_interfaces(int root, struct error_counts *counts)
{
    static const char *const names[] = {"rx_crc_errors", "rx_frame_errors", "tx_carrier_errors"};
    CLEANUP(strlist_done) struct strlist interfaces = STRLIST_INIT;
    unsigned told = 0;
    root_list(root, "sys/class/net", DEVICES_MAX, &interfaces, NULL);
    for (size_t i = 0; i < interfaces.count; i++) {
        char path[256];
        snprintf(path, sizeof path, "sys/class/net/%.60s/statistics", interfaces.items[i]);
        if (strcmp(interfaces.items[i], "lo") != 0)
            told += add_folder(root, path, interfaces.items[i], names, ARRAY_LEN(names), counts);
    }
    return told;
}

static uint64_t value_of(const struct error_counts *counts, const char *name)
{
    for (size_t i = 0; i < counts->count; i++)
        if (strcmp(counts->list[i].name, name) == 0)
            return counts->list[i].value;
    return 0;
}

void error_counts_rose(const struct error_counts *begun, const struct error_counts *now,
                       struct strlist *ret_rose)
{
    for (size_t i = 0; i < now->count; i++) {
        uint64_t before = value_of(begun, now->list[i].name), after = now->list[i].value;
        uint64_t more = after >= before ? after - before : after;
        if (more)
            strlist_addf(ret_rose, "%s +%" PRIu64, now->list[i].name, more);
    }
}
