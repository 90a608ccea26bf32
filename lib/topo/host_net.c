/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"

#define CLASS "sys/class/net"

static void read_attributes(int dir, struct topo_netdev *net)
{
    char text[256];
    if (attr_read(dir, "address", text, sizeof text) > 0 && strlen(text) < sizeof net->mac &&
        strspn(text, "0123456789abcdefABCDEF:") == strlen(text))
        snprintf(net->mac, sizeof net->mac, "%s", text);
    attr_number(dir, "mtu", &net->mtu);
    if (attr_read(dir, "operstate", text, sizeof text) > 0 && strcmp(text, "unknown") != 0)
        net->up = strcmp(text, "up") == 0 ? TOPO_YES : TOPO_NO;
    /* a virtual one invents its speed, and asking takes the kernel's network lock */
    if (net->pci != TOPO_NONE)
        attr_number(dir, "speed", &net->speed_mbps);
    if (net->speed_mbps == UINT32_MAX)
        net->speed_mbps = 0;
}

static int read_netdev(struct facts_reader *r, const char *name)
{
    char path[128];
    struct topo_host *host = r->host;
    struct drarun_error own = {0};
    snprintf(path, sizeof path, CLASS "/%s", name);
    cleanup_close int dir = root_open(r->root, path, O_PATH | O_DIRECTORY, &own);
    if (dir < 0) {
        if (dir != -ENOTDIR) /* bonding_masters is a file */
            facts_warn(r, "%s", own.text);
        return 0;
    }
    struct topo_netdev *net = facts_grow(r, &host->netdevs, &host->netdev_count, sizeof *net);
    if (!net)
        return -ENOMEM;
    snprintf(net->name, sizeof net->name, "%s", name);
    int rc = facts_device_pci(r, path, &net->pci);
    read_attributes(dir, net);
    return rc;
}

int read_netdevs(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    int rc = facts_list(r, CLASS, &names);
    for (size_t i = 0; rc == 0 && i < names.count && i < TOPO_DEVICES_MAX; i++)
        if (facts_name_ok(r, CLASS, names.items[i]))
            rc = read_netdev(r, names.items[i]);
    strlist_done(&names);
    return rc;
}
