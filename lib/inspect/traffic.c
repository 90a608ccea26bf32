/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/traffic.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strlist.h"
#include "lib/topo/root.h"

#define DEVICES_MAX 4096u
#define WORD 4u /* InfiniBand counts data in these */

/* False where there is no such counter. */
static bool read_counter(int root, const char *path, uint64_t *ret_value)
{
    char text[64], *end;
    if (root_read(root, path, text, sizeof text) <= 0)
        return false;
    *ret_value = strtoull(text, &end, 10);
    return end != text && *end == '\0';
}

static uint64_t sum(int root, const char *folder, const char *sent, const char *received,
                    unsigned unit)
{
    const char *const names[] = {sent, received};
    uint64_t total = 0, value = 0;
    char path[512];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (read_counter(root, path, &value))
            total += value * unit;
    }
    return total;
}

/* EFA has no counters of InfiniBand's, but bytes of its own. */
static uint64_t port_bytes(int root, const char *device, const char *port)
{
    char path[400];
    snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports/%.20s/counters", device, port);
    uint64_t bytes = sum(root, path, "port_xmit_data", "port_rcv_data", WORD);
    if (bytes > 0)
        return bytes;
    snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports/%.20s/hw_counters", device, port);
    return sum(root, path, "tx_bytes", "rx_bytes", 1);
}

static uint64_t rdma_bytes(int root)
{
    struct strlist devices = STRLIST_INIT;
    uint64_t total = 0;
    root_list(root, "sys/class/infiniband", DEVICES_MAX, &devices, NULL);
    for (size_t i = 0; i < devices.count; i++) {
        struct strlist ports = STRLIST_INIT;
        char path[128];
        snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports", devices.items[i]);
        root_list(root, path, DEVICES_MAX, &ports, NULL);
        for (size_t p = 0; p < ports.count; p++)
            total += port_bytes(root, devices.items[i], ports.items[p]);
        strlist_done(&ports);
    }
    strlist_done(&devices);
    return total;
}

void traffic_read(int rootfd, struct traffic *ret_traffic)
{
    cleanup_close int own = rootfd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int root = rootfd < 0 ? own : rootfd;
    struct strlist netdevs = STRLIST_INIT;
    struct traffic traffic = {.rdma = rdma_bytes(root)};
    root_list(root, "sys/class/net", DEVICES_MAX, &netdevs, NULL);
    for (size_t i = 0; i < netdevs.count; i++) {
        char path[128];
        snprintf(path, sizeof path, "sys/class/net/%.60s/statistics", netdevs.items[i]);
        uint64_t bytes = sum(root, path, "tx_bytes", "rx_bytes", 1);
        if (strcmp(netdevs.items[i], "lo") == 0)
            traffic.loop += bytes;
        else
            traffic.net += bytes;
    }
    strlist_done(&netdevs);
    *ret_traffic = traffic;
}
