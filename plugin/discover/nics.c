/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/root.h"
#include "plugin/discover/discover_private.h"

#define PORTS_MAX 8u /* interfaces of one function */

struct function { /* one PCI function with what hangs on it */
    size_t pci;
    const struct topo_netdev *netdevs[PORTS_MAX]; /* by port; NULL: that port has none */
    const struct topo_rdma *rdma;
    const char *used; /* why the host keeps it */
    const char *live; /* what the host does over it */
};

/* The number of an interface's port on its function, from 0: mlx4 has several, mlx5 one. */
static uint32_t port_of(struct discovery *d, const char *name)
{
    char path[128], text[16];
    snprintf(path, sizeof path, "sys/class/net/%s/dev_port", name);
    if (root_read(d->root, path, text, sizeof text) <= 0)
        return 0;
    return (uint32_t)strtoul(text, NULL, 10);
}

static void collect_netdevs(struct discovery *d, struct function *function)
{
    for (size_t i = 0; i < d->host->netdev_count; i++) {
        const struct topo_netdev *net = &d->host->netdevs[i];
        if (net->pci != function->pci || net->representor)
            continue;
        const char *used = host_use_of(d->use, net->name);
        const char *live = host_use_of(d->live, net->name);
        uint32_t port = port_of(d, net->name);
        if (used)
            function->used = used;
        if (live)
            function->live = live;
        if (port < PORTS_MAX && !function->netdevs[port] && !net->partition_of[0] &&
            !net->subfunction[0])
            function->netdevs[port] = net;
    }
}

/* Software RDMA (rxe, siw) has no function; it names the interface below it. */
static const struct topo_rdma *software_rdma_on(struct discovery *d, const char *netdev)
{
    char path[160], parent[TOPO_NAME_MAX];
    for (size_t i = 0; i < d->host->rdma_count; i++) {
        const struct topo_rdma *rdma = &d->host->rdmas[i];
        if (rdma->pci != TOPO_NONE)
            continue;
        snprintf(path, sizeof path, "sys/class/infiniband/%s/parent", rdma->name);
        bool named = root_read(d->root, path, parent, sizeof parent) > 0;
        if (named ? strcmp(parent, netdev) == 0 : host_has_gid_of(rdma, netdev))
            return rdma;
    }
    return NULL;
}

static const struct topo_rdma *rdma_of(struct discovery *d, const struct function *function)
{
    const struct topo_host *host = d->host;
    const struct topo_rdma *found = NULL;
    for (size_t i = 0; i < host->rdma_count && !found; i++)
        if (host->rdmas[i].pci == function->pci && !host->rdmas[i].subfunction[0])
            found = &host->rdmas[i];
    for (size_t i = 0; i < PORTS_MAX && !found; i++)
        if (function->netdevs[i])
            found = software_rdma_on(d, function->netdevs[i]->name);
    return found;
}

static bool is_network(const struct topo_pci *pci)
{
    return pci->class_code >> 16 == 0x02;
}

/* Ports of a function: those that have an interface; of an InfiniBand function those of its RDMA
 * device; one for a function that shows neither, since both may be in a pod. */
static size_t port_count(const struct function *function)
{
    size_t count = 1;
    for (size_t i = 0; i < PORTS_MAX; i++)
        if (function->netdevs[i])
            count = i + 1;
    if (function->rdma && function->rdma->port_count > count)
        count = function->rdma->port_count < PORTS_MAX ? function->rdma->port_count : PORTS_MAX;
    return count;
}

static int add_port(struct discovery *d, const struct function *function, size_t port)
{
    struct node_device *device = discover_add(d, NODE_DEVICE_NIC, function->pci);
    if (!device)
        return -ENOMEM;
    device->port = (uint32_t)port;
    snprintf(device->used, sizeof device->used, "%s", function->live ? function->live : "");
    if (port > 0) {
        size_t len = strlen(device->name);
        snprintf(device->name + len, sizeof device->name - len, "-p%zu", port);
    }
    if (function->netdevs[port])
        netdev_facts_read(d, function->netdevs[port], &device->netdev);
    return function->rdma ? rdma_facts_read(d, function->rdma, (uint32_t)port + 1, &device->rdma)
                          : 0;
}

static bool has_any(const struct function *function)
{
    bool any = function->rdma;
    for (size_t i = 0; i < PORTS_MAX; i++)
        any |= function->netdevs[i] != NULL;
    return any;
}

static int add_function(struct discovery *d, size_t pci)
{
    char driver[32], name[PCI_ADDR_TEXT];
    struct function function = {.pci = pci};
    collect_netdevs(d, &function);
    function.rdma = rdma_of(d, &function);
    if (!is_network(&d->host->pci[pci]) && !has_any(&function))
        return 0;
    pci_driver_read(d, pci, driver, sizeof driver);
    if (pci_driver_is_passthrough(driver) || (!driver[0] && !has_any(&function)))
        return 0;
    if (function.used) { /* with all its ports: an RDMA device and firmware are common to them */
        pci_addr_format(d->host->pci[pci].place.addr, name);
        discover_warn(d, "%s is not published: the host uses it: %s", name, function.used);
        return 0;
    }
    if (discover_is_switch_manager(d, pci)) {
        pci_addr_format(d->host->pci[pci].place.addr, name);
        discover_warn(d, "%s is not published: it manages NVLink switches (SW_MNG)", name);
        return 0;
    }
    int rc = 0;
    size_t first = d->devices->count;
    for (size_t i = 0, count = port_count(&function); rc == 0 && i < count; i++)
        rc = add_port(d, &function, i);
    if (rc == 0 && d->devices->list[first].pci.vfs > 0) { /* its holder governs the others' VFs */
        discover_warn(d, "%s is not published: it has virtual functions",
                      d->devices->list[first].pci.bus_id);
        node_devices_cut(d->devices, first);
    }
    return rc;
}

/* ---- interfaces without hardware ---- */

static bool is_label(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len < NODE_DEVICE_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && name[0] != '-' &&
           name[len - 1] != '-';
}

/* As DraNet: "net-" and the name in base32 (RFC 4648), lower case, without padding. */
static void encoded_name(const char *name, char *text, size_t size)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    size_t used = (size_t)snprintf(text, size, "net-");
    uint32_t bits = 0;
    unsigned have = 0;
    for (const char *p = name; *p; p++) {
        bits = bits << 8 | (unsigned char)*p;
        for (have += 8; have >= 5 && used + 1 < size; have -= 5)
            text[used++] = digits[bits >> (have - 5) & 31];
    }
    if (have > 0 && used + 1 < size)
        text[used++] = digits[bits << (5 - have) & 31];
    text[used] = '\0';
}

static int add_virtual(struct discovery *d, const struct topo_netdev *net)
{
    const char *used = host_use_of(d->use, net->name), *live = host_use_of(d->live, net->name);
    const struct topo_rdma *rdma = software_rdma_on(d, net->name);
    if (!config_has_prefix(&d->source->config->virtual_prefixes, net->name))
        return 0;
    if (used) {
        discover_warn(d, "%s is not published: the host uses it: %s", net->name, used);
        return 0;
    }
    struct node_device *device = discover_add(d, NODE_DEVICE_NIC, TOPO_NONE);
    if (!device)
        return -ENOMEM;
    snprintf(device->used, sizeof device->used, "%s", live ? live : "");
    if (is_label(net->name))
        snprintf(device->name, sizeof device->name, "%s", net->name);
    else
        encoded_name(net->name, device->name, sizeof device->name);
    netdev_facts_read(d, net, &device->netdev);
    return rdma ? rdma_facts_read(d, rdma, 1, &device->rdma) : 0;
}

int discover_nics(struct discovery *d)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->host->pci_count; i++)
        rc = add_function(d, i);
    for (size_t i = 0; rc == 0 && i < d->host->netdev_count; i++)
        if (d->host->netdevs[i].pci == TOPO_NONE && strcmp(d->host->netdevs[i].name, "lo") != 0)
            rc = add_virtual(d, &d->host->netdevs[i]);
    return rc;
}

/* ---- rails ---- */

/* One that shows its function alone has its place, too: it may be in a pod, or its driver has taken
 * it off after an error, before this instance of the plugin had seen it. */
static bool has_rail(const struct node_device *device)
{
    return device->kind == NODE_DEVICE_NIC && device->pci.known &&
           (device->rdma.name[0] || node_device_is_bare(device));
}

struct rail { /* where a NIC is plugged in */
    uint32_t vendor, model;
    struct pci_addr at;
    uint32_t port;
    struct node_device *device;
};

/* Virtual functions use the wire of their PF, whatever functions the others have. */
static struct rail rail_of(struct node_device *device)
{
    const struct node_pci *pci = &device->pci;
    struct rail rail = {pci->vendor, pci->device, pci->addr, device->port, device};
    if (pci->sriov == NODE_SRIOV_VF && pci->pf_device &&
        pci_addr_parse(pci->pf, &rail.at, NULL) == 0)
        rail.model = pci->pf_device;
    return rail;
}

static int compare_models(const struct rail *a, const struct rail *b)
{
    if (a->vendor != b->vendor)
        return a->vendor < b->vendor ? -1 : 1;
    return (a->model > b->model) - (a->model < b->model);
}

static int compare_wires(const struct rail *a, const struct rail *b)
{
    int order = pci_addr_compare(a->at, b->at);
    return order ? order : (a->port > b->port) - (a->port < b->port);
}

static int compare_rails(const void *a, const void *b)
{
    int order = compare_models(a, b);
    return order ? order : compare_wires(a, b);
}

/* NICs of one model are numbered by address: the fabrics of GPU machines join NICs of the same
 * number. The management NIC of such a machine is of another model. */
int devices_number_rails(struct node_devices *devices)
{
    cleanup_free struct rail *rails = calloc(devices->count + 1, sizeof *rails);
    size_t count = 0;
    if (!rails)
        return -ENOMEM;
    for (size_t i = 0; i < devices->count; i++) {
        devices->list[i].rail = -1;
        if (has_rail(&devices->list[i]))
            rails[count++] = rail_of(&devices->list[i]);
    }
    qsort(rails, count, sizeof *rails, compare_rails);
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || compare_models(&rails[i - 1], &rails[i]) != 0;
        rails[i].device->rail =
            first ? 0 : rails[i - 1].device->rail + (compare_wires(&rails[i - 1], &rails[i]) != 0);
    }
    return 0;
}
