/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/topo/default_route.h"
#include "lib/topo/host_private.h"
#include "lib/topo/port_name.h"

#define CLASS "sys/class/net"
#define IPOIB_ADDRESS_LEN 59u /* the text of 20 bytes, which no other kind has */

static void read_attributes(int dir, struct topo_netdev *net)
{
    char text[256];
    if (attr_read(dir, "address", text, sizeof text) > 0 && strlen(text) < sizeof net->mac &&
        strspn(text, "0123456789abcdefABCDEF:") == strlen(text))
        memcpy(net->mac, text, strlen(text) + 1);
    attr_number(dir, "mtu", &net->mtu);
    if (attr_read(dir, "operstate", text, sizeof text) > 0 && strcmp(text, "unknown") != 0)
        net->up = strcmp(text, "up") == 0 ? TOPO_YES : TOPO_NO;
    /* a virtual one invents its speed, and asking takes the kernel's network lock */
    if (net->pci != TOPO_NONE)
        attr_number(dir, "speed", &net->speed_mbps);
    if (net->speed_mbps == UINT32_MAX)
        net->speed_mbps = 0;
    net->representor = net->pci != TOPO_NONE &&
                       attr_read(dir, "phys_port_name", text, sizeof text) > 0 &&
                       port_name_is_representor(text);
    if (strlen(net->mac) == IPOIB_ADDRESS_LEN) {
        attr_number(dir, "ifindex", &net->ifindex);
        attr_number(dir, "iflink", &net->iflink);
    }
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
    int rc = facts_device_pci(r, path, &net->pci, net->subfunction);
    read_attributes(dir, net);
    return rc;
}

/* The kernel makes IPoIB's interface of a partition a virtual one, without a function and without
 * upper_* and lower_*; only its iflink tells which one it is on. (It has a file `parent` where it
 * was made by the HCA's create_child, and none where it was made by rtnetlink.) */
static void find_partitions(struct topo_host *host)
{
    for (size_t i = 0; i < host->netdev_count; i++) {
        struct topo_netdev *net = &host->netdevs[i];
        for (size_t k = 0; net->iflink && net->iflink != net->ifindex && k < host->netdev_count;
             k++)
            if (host->netdevs[k].ifindex == net->iflink)
                memcpy(net->partition_of, host->netdevs[k].name, sizeof net->partition_of);
    }
}

/* ---- the uplink ---- */

#define USUAL_UPLINK "eth0" /* where no route can be read */

/* "LOWER UPPER" of interfaces that are stacked: of a bond, a bridge, a VLAN, a synthetic NIC. */
struct stack {
    struct strlist lower, upper;
};

static void add_layer(struct stack *stack, const char *lower, const char *upper)
{
    strlist_add(&stack->lower, lower);
    strlist_add(&stack->upper, upper);
}

/* Linux links both ways, upper_NAME and lower_NAME; master is the one that owns the interface. */
static int read_layers(struct facts_reader *r, const char *name, struct stack *stack)
{
    char path[160], target[256];
    struct strlist entries = STRLIST_INIT;
    snprintf(path, sizeof path, CLASS "/%s", name);
    int rc = facts_list(r, path, &entries);
    for (size_t i = 0; rc == 0 && i < entries.count; i++) {
        const char *entry = entries.items[i];
        if (strncmp(entry, "upper_", 6) == 0)
            add_layer(stack, name, entry + 6);
        else if (strncmp(entry, "lower_", 6) == 0)
            add_layer(stack, entry + 6, name);
    }
    cleanup_close int dir = rc == 0 && strlist_has(&entries, "master")
                                ? root_open(r->root, path, O_PATH | O_DIRECTORY, NULL)
                                : -1;
    ssize_t len = dir >= 0 ? readlinkat(dir, "master", target, sizeof target - 1) : -1;
    if (len > 0) {
        target[len] = '\0';
        const char *slash = strrchr(target, '/');
        add_layer(stack, name, slash ? slash + 1 : target);
    }
    strlist_done(&entries);
    return rc;
}

static struct topo_netdev *find_netdev(struct topo_host *host, const char *name)
{
    for (size_t i = 0; i < host->netdev_count; i++)
        if (strcmp(host->netdevs[i].name, name) == 0)
            return &host->netdevs[i];
    return NULL;
}

/* The ports of all bridges of Open vSwitch have one master, and nothing links a bridge's own
 * interface to its ports: it has the address of the one over which the host is reached. */
static void add_switch_ports(struct topo_host *host, struct stack *stack)
{
    for (size_t i = 0, layers = stack->lower.count; i < layers; i++) {
        const struct topo_netdev *port = find_netdev(host, stack->lower.items[i]);
        if (!port || strcmp(stack->upper.items[i], "ovs-system") != 0)
            continue;
        for (size_t k = 0; k < host->netdev_count; k++) {
            const struct topo_netdev *net = &host->netdevs[k];
            if (net != port && net->pci == TOPO_NONE && net->mac[0] &&
                strcmp(net->mac, port->mac) == 0)
                add_layer(stack, port->name, net->name);
        }
    }
}

/* What lies below an uplink belongs to it, as far down as it goes. */
static void mark_parts(struct topo_host *host, const struct stack *stack)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < stack->lower.count; i++) {
            struct topo_netdev *lower = find_netdev(host, stack->lower.items[i]);
            const struct topo_netdev *upper = find_netdev(host, stack->upper.items[i]);
            if (!lower || !upper || lower->uplink[0] || !upper->uplink[0])
                continue;
            snprintf(lower->uplink, sizeof lower->uplink, "%s", upper->uplink);
            more = true;
        }
    }
}

static int read_uplinks(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    struct stack stack = {STRLIST_INIT, STRLIST_INIT};
    int rc = default_routes_read(r->root, false, &names, r->err);
    if (rc == 0 && names.count == 0)
        rc = default_routes_read(r->root, true, &names, r->err);
    if (rc == 0 && names.count == 0)
        strlist_add(&names, USUAL_UPLINK);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        struct topo_netdev *net = find_netdev(r->host, names.items[i]);
        if (net)
            snprintf(net->uplink, sizeof net->uplink, "%s", net->name);
    }
    for (size_t i = 0; rc == 0 && r->host->rdma_count > 0 && i < r->host->netdev_count; i++)
        rc = read_layers(r, r->host->netdevs[i].name, &stack);
    for (size_t i = 0; rc == 0 && i < r->host->netdev_count; i++)
        if (r->host->netdevs[i].partition_of[0])
            add_layer(&stack, r->host->netdevs[i].partition_of, r->host->netdevs[i].name);
    if (rc == 0 && !stack.lower.failed && !stack.upper.failed)
        add_switch_ports(r->host, &stack);
    if (rc == 0 && (stack.lower.failed || stack.upper.failed || names.failed))
        rc = facts_nomem(r);
    if (rc == 0)
        mark_parts(r->host, &stack);
    strlist_done(&stack.lower);
    strlist_done(&stack.upper);
    strlist_done(&names);
    return rc;
}

int read_netdevs(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    int rc = facts_list_devices(r, CLASS, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++)
        if (facts_name_ok(r, CLASS, names.items[i]))
            rc = read_netdev(r, names.items[i]);
    strlist_done(&names);
    find_partitions(r->host);
    return rc == 0 && !r->devices_alone ? read_uplinks(r) : rc;
}
