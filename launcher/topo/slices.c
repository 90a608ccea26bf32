/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/topo/slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/allocation.h"
#include "jobs/derive/inventory/device.h"
#include "lib/dra/slices.h"
#include "launcher/files/cluster_files.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "slices: out of memory");
}

/* ---- which node ---- */

static int choose_node(const struct slices *slices, const char **node, struct drarun_error *err)
{
    const char *first = NULL;
    bool wanted = false;
    for (size_t i = 0; i < slices->device_count; i++) {
        const char *name = slices->devices[i].node;
        if (!name)
            continue;
        wanted |= *node && strcmp(name, *node) == 0;
        if (!*node && first && strcmp(first, name) != 0)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                              "the slices are of several nodes, as %.100s and %.100s: choose one "
                              "with --node",
                              first, name);
        first = first ? first : name;
    }
    if (*node && !wanted)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "--node %.100s: no slice of it; of %.100s",
                          *node, first ? first : "no node at all");
    if (!first)
        return error_kind(err, DRARUN_ERR_SPEC, ENOENT, "no ResourceSlice with devices of a node");
    *node = *node ? *node : first;
    return 0;
}

/* ---- devices ---- */

struct builder {
    struct topo_host *host;
    const json_t *claims; /* NULL: not asked for */
    bool ats;
};

static bool has_results(const json_t *claim, const struct slice_device *slice)
{
    struct allocation allocation;
    bool found = false;
    if (allocation_read(claim, &allocation, NULL) < 0)
        return false;
    for (size_t i = 0; i < allocation.count; i++) {
        const struct allocation_result *result = &allocation.results[i];
        found |= strcmp(result->driver, slice->driver) == 0 &&
                 strcmp(result->pool, slice->pool) == 0 && strcmp(result->device, slice->name) == 0;
    }
    allocation_done(&allocation);
    return found;
}

static enum topo_tri claimed(const struct builder *b, const struct slice_device *slice)
{
    size_t i;
    json_t *claim;
    if (!b->claims)
        return TOPO_UNKNOWN;
    json_array_foreach(b->claims, i, claim)
    {
        if (has_results(claim, slice))
            return TOPO_YES;
    }
    return TOPO_NO;
}

/* Attributes are anyone's text: it goes to terminals and into XML. */
static void clean(char *text, const char *good)
{
    for (char *p = text; *p; p++)
        if (!strchr(good, *p))
            *p = '?';
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@-"

static void set_name(char *name, size_t size, const char *text)
{
    snprintf(name, size, "%s", text);
    clean(name, LETTERS);
}

static char *copy_text(const char *text)
{
    char *copy = strndup(text, 127);
    if (copy)
        clean(copy, LETTERS " ()/+,");
    return copy;
}

/* A function for a device; TOPO_NONE when nothing is known of its place. */
static size_t add_pci(struct builder *b, const struct device *device)
{
    struct topo_host *host = b->host;
    struct topo_pci *pci = &host->pci[host->pci_count];
    if (device->pci == PCI_NONE && !device->root && device->numa < 0)
        return TOPO_NONE;
    *pci = (struct topo_pci){.place = {.numa = device->numa}};
    pci->place.addr_unknown = device->pci == PCI_NONE;
    if (device->pci != PCI_NONE)
        pci->place.addr =
            (struct pci_addr){(uint32_t)(device->pci >> 16), (uint8_t)(device->pci >> 8),
                              (uint8_t)(device->pci >> 3 & 0x1f), (uint8_t)(device->pci & 7)};
    if (device->root && pci_root_valid(device->root))
        snprintf(pci->place.root, sizeof pci->place.root, "%s", device->root);
    /* GB200 and GB300 name each function's socket in its domain (0018 is of node 1), and publish
     * no node; ATS is the mark of such machines */
    if (device->kind == DEVICE_GPU && device->ats && device->numa < 0 && device->pci != PCI_NONE)
        pci->place.numa = (int32_t)(pci->place.addr.domain >> 4 & 0xf);
    return host->pci_count++;
}

static int add_gpu(struct builder *b, const struct device *device, const struct slice_device *slice)
{
    struct topo_gpu *gpu = &b->host->gpus[b->host->gpu_count++];
    *gpu = (struct topo_gpu){add_pci(b, device), "other",          NULL, NULL,
                             device->index,      claimed(b, slice)};
    if (device->vendor)
        gpu->vendor = device->vendor;
    gpu->product = copy_text(device->product ? device->product : device->name);
    gpu->uuid = device->uuid ? copy_text(device->uuid) : NULL;
    b->ats |= device->ats;
    return gpu->product && (gpu->uuid || !device->uuid) ? 0 : -ENOMEM;
}

static int add_nic(struct builder *b, const struct device *device, const struct slice_device *slice)
{
    struct topo_host *host = b->host;
    size_t pci = add_pci(b, device);
    if (device->ifname) {
        struct topo_netdev *net = &host->netdevs[host->netdev_count++];
        *net = (struct topo_netdev){.pci = pci};
        set_name(net->name, sizeof net->name, device->ifname);
    }
    if (!device->rdma)
        return 0;
    struct topo_rdma *rdma = &host->rdmas[host->rdma_count++];
    *rdma = (struct topo_rdma){.pci = pci, .usable = claimed(b, slice)};
    const char *name = device->ibdev ? device->ibdev : device->ifname;
    set_name(rdma->name, sizeof rdma->name, name ? name : device->name);
    rdma->ports = calloc(1, sizeof *rdma->ports);
    if (!rdma->ports)
        return -ENOMEM;
    rdma->port_count = 1;
    rdma->ports[0].number = 1;
    rdma->ports[0].link = device->encap_ib ? TOPO_LINK_IB
                          : device->ifname ? TOPO_LINK_ETHERNET
                                           : TOPO_LINK_UNKNOWN;
    return 0;
}

static int add_devices(struct builder *b, const struct slice_device *slices, size_t count,
                       struct drarun_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct device device;
        int rc = device_read(&slices[i], &device, err);
        if (rc == 0 && device.kind == DEVICE_GPU)
            rc = add_gpu(b, &device, &slices[i]);
        else if (rc == 0 && device.kind == DEVICE_NIC)
            rc = add_nic(b, &device, &slices[i]);
        if (rc < 0)
            return rc == -ENOMEM ? no_memory(err)
                                 : error_kind(err, DRARUN_ERR_SPEC, -rc, "%s", err->text);
    }
    return 0;
}

/* GPU drivers publish no NUMA node; a NIC below the same host bridge has one. */
static void borrow_numa(struct topo_host *host)
{
    for (size_t i = 0; i < host->pci_count; i++)
        for (size_t j = 0; host->pci[i].place.numa < 0 && j < host->pci_count; j++)
            if (host->pci[i].place.root[0] &&
                strcmp(host->pci[i].place.root, host->pci[j].place.root) == 0)
                host->pci[i].place.numa = host->pci[j].place.numa;
}

static bool has_node(const struct topo_host *host, int32_t numa)
{
    for (size_t i = 0; i < host->numa_count; i++)
        if ((int32_t)host->numas[i].id == numa)
            return true;
    return false;
}

static int by_id(const void *a, const void *b)
{
    const struct topo_numa *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int add_numas(struct topo_host *host)
{
    for (size_t i = 0; i < host->pci_count; i++) {
        int32_t numa = host->pci[i].place.numa;
        if (numa < 0 || has_node(host, numa))
            continue;
        char *cpus = strdup("?");
        if (!cpus)
            return -ENOMEM;
        host->numas[host->numa_count++] = (struct topo_numa){(uint32_t)numa, cpus};
    }
    if (host->numa_count > 1)
        qsort(host->numas, host->numa_count, sizeof *host->numas, by_id);
    return 0;
}

static int gpu_order(const void *a, const void *b, void *host_arg)
{
    const struct topo_gpu *x = a, *y = b;
    const struct topo_host *host = host_arg;
    bool known = x->pci != TOPO_NONE && y->pci != TOPO_NONE &&
                 !host->pci[x->pci].place.addr_unknown && !host->pci[y->pci].place.addr_unknown;
    if (known)
        return pci_addr_compare(host->pci[x->pci].place.addr, host->pci[y->pci].place.addr);
    return x->minor < y->minor ? -1 : x->minor > y->minor;
}

static int build(struct builder *b, const struct slice_device *devices, size_t count,
                 struct drarun_error *err)
{
    struct topo_host *host = b->host;
    host->pci = calloc(count + 1, sizeof *host->pci);
    host->gpus = calloc(count + 1, sizeof *host->gpus);
    host->rdmas = calloc(count + 1, sizeof *host->rdmas);
    host->netdevs = calloc(count + 1, sizeof *host->netdevs);
    host->numas = calloc(count + 1, sizeof *host->numas);
    if (!host->pci || !host->gpus || !host->rdmas || !host->netdevs || !host->numas)
        return no_memory(err);
    int rc = add_devices(b, devices, count, err);
    if (rc < 0)
        return rc;
    borrow_numa(host);
    if (add_numas(host) < 0)
        return no_memory(err);
    rc = host_arrange(host, err);
    if (rc == 0 && host->gpu_count > 1)
        qsort_r(host->gpus, host->gpu_count, sizeof *host->gpus, gpu_order, host);
    host->c2c = b->ats ? TOPO_YES : TOPO_UNKNOWN;
    return rc;
}

int topo_slices_host(const struct slices *slices, const json_t *claims, const char *node,
                     struct topo_host *ret_host, struct drarun_error *err)
{
    struct topo_host host = {.cpu_family = -1, .cpu_model = -1, .partial = true};
    struct builder builder = {&host, claims, false};
    size_t count = 0;
    const struct slice_device *devices = slices_of_node(slices, node, &count);
    int rc = build(&builder, devices, count, err);
    if (rc == 0) {
        host.machine = copy_text(node);
        rc = host.machine ? 0 : no_memory(err);
    }
    if (rc < 0)
        host_done(&host);
    else
        *ret_host = host;
    return rc;
}

int topo_slices_read(const struct strlist *files, const struct strlist *claims, const char *node,
                     struct topo_host *ret_host, struct drarun_error *err)
{
    struct slices slices;
    json_t *all = json_array(), *given = json_array();
    const struct cluster_kind kinds[] = {{"ResourceSlice", all, NULL},
                                         {"ResourceClaim", given, NULL}};
    int rc =
        all && given ? cluster_files_read(strlist_items(files), &kinds[0], 1, err) : no_memory(err);
    if (rc == 0)
        rc = cluster_files_read(strlist_items(claims), &kinds[1], 1, err);
    if (rc == 0) {
        rc = slices_read(all, &slices, err);
        if (rc < 0 && err && err->kind == DRARUN_ERR_NONE)
            err->kind = DRARUN_ERR_SPEC;
        if (rc == 0) {
            rc = choose_node(&slices, &node, err);
            if (rc == 0)
                rc = topo_slices_host(&slices, claims->count ? given : NULL, node, ret_host, err);
            slices_done(&slices);
        }
    }
    json_decref(all);
    json_decref(given);
    return rc;
}
