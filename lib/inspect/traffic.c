/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/traffic.h"

#include <fcntl.h>
#include <stdbool.h>
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

#define NAMES_MAX 4

/* told: set where one of the counters is there. */
static uint64_t sum(int root, const char *folder, const char *const names[NAMES_MAX], unsigned unit,
                    bool *told)
{
    uint64_t total = 0, value = 0;
    char path[512];
    for (size_t i = 0; i < NAMES_MAX && names[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (!read_counter(root, path, &value))
            continue;
        total += value * unit;
        *told = true;
    }
    return total;
}

/* Of a port: InfiniBand's, which not all drivers have, then those drivers' own: of efa, bnxt_re and
 * mana_ib, of erdma in Linux and from Alibaba, of ionic, of irdma. */
static const struct {
    const char *folder;
    unsigned unit;
    const char *names[NAMES_MAX];
} of_ports[] = {
    {"counters", WORD, {"port_xmit_data", "port_rcv_data"}},
    {"hw_counters", 1, {"tx_bytes", "rx_bytes"}},
    {"hw_counters", 1, {"tx_bytes_cnt", "rx_bytes_cnt"}},
    {"hw_counters", 1, {"hw_tx_bytes_cnt", "hw_rx_bytes_cnt"}},
    {"hw_counters", 1, {"tx_rdma_ucast_bytes", "rx_rdma_ucast_bytes"}},
    {"hw_counters", 1, {"ip4OutOctets", "ip4InOctets", "ip6OutOctets", "ip6InOctets"}},
};

static uint64_t port_bytes(int root, const char *device, const char *port, bool *told)
{
    uint64_t bytes = 0;
    char path[400];
    for (size_t i = 0; bytes == 0 && i < ARRAY_LEN(of_ports); i++) {
        snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports/%.20s/%s", device, port,
                 of_ports[i].folder);
        bytes = sum(root, path, of_ports[i].names, of_ports[i].unit, told);
    }
    return bytes;
}

static uint64_t rdma_bytes(int root, unsigned *untold)
{
    struct strlist devices = STRLIST_INIT;
    uint64_t total = 0;
    root_list(root, "sys/class/infiniband", DEVICES_MAX, &devices, NULL);
    for (size_t i = 0; i < devices.count; i++) {
        struct strlist ports = STRLIST_INIT;
        char path[128];
        snprintf(path, sizeof path, "sys/class/infiniband/%.60s/ports", devices.items[i]);
        root_list(root, path, DEVICES_MAX, &ports, NULL);
        for (size_t p = 0; p < ports.count; p++) {
            bool told = false;
            total += port_bytes(root, devices.items[i], ports.items[p], &told);
            *untold += !told;
        }
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
    static const char *const names[NAMES_MAX] = {"tx_bytes", "rx_bytes"};
    struct traffic traffic = {0};
    traffic.rdma = rdma_bytes(root, &traffic.untold);
    root_list(root, "sys/class/net", DEVICES_MAX, &netdevs, NULL);
    for (size_t i = 0; i < netdevs.count; i++) {
        char path[128];
        bool told = false;
        snprintf(path, sizeof path, "sys/class/net/%.60s/statistics", netdevs.items[i]);
        uint64_t bytes = sum(root, path, names, 1, &told);
        if (strcmp(netdevs.items[i], "lo") == 0)
            traffic.loop += bytes;
        else
            traffic.net += bytes;
    }
    strlist_done(&netdevs);
    *ret_traffic = traffic;
}
