/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs and NICs of an inventory: how they are put in, their order, which RDMA NICs carry data
 * (by the rule that `drarun topo` has: lib/topo/data_nics.h), and what each of them is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/inventory_private.h"
#include "jobs/derive/nccl/nccl_topology.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/topo/rdma_text.h"

#define LEFT_SHOWN 16 /* NICs: a host's network has every virtual function */

/* ---- what is put in ---- */

static int grow(void *list, size_t count, size_t size, struct drarun_error *err)
{
    void **pointer = list;
    void *grown = reallocarray(*pointer, count + 1, size);
    if (!grown)
        return error_set(err, ENOMEM, "plan: out of memory");
    *pointer = grown;
    return 0;
}

/* Two shares of a NIC that the driver lets several have are one NIC. */
static bool has_nic(const struct inventory *inv, const struct device *device)
{
    for (size_t n = 0; device->slice && n < inv->nic_count; n++)
        if (inv->nics[n].device.slice == device->slice)
            return true;
    return false;
}

int reading_add_device(struct reading *r, const struct device *device, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    int rc = 0;
    switch (device->kind) {
    case DEVICE_GPU:
    case DEVICE_MIG:
        rc = grow(&inv->gpus, inv->gpu_count, sizeof *inv->gpus, err);
        if (rc == 0)
            inv->gpus[inv->gpu_count++] = *device;
        inv->mig |= device->kind == DEVICE_MIG;
        break;
    case DEVICE_NIC:
        if (has_nic(inv, device))
            break;
        rc = grow(&inv->nics, inv->nic_count, sizeof *inv->nics, err);
        if (rc == 0)
            inv->nics[inv->nic_count++] = (struct inventory_nic){.device = *device};
        break;
    case DEVICE_CHANNEL:
        inv->channel = true;
        break;
    case DEVICE_OTHER:
        break;
    }
    if (rc == 0 && inv->gpu_count > NCCL_GPUS_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "worker %u has more than %u GPUs", r->worker,
                          NCCL_GPUS_MAX);
    return rc;
}

/* ---- the order ---- */

bool inventory_comes_before(const struct device *a, const struct device *b)
{
    if (a->pci != b->pci)
        return a->pci < b->pci;
    return a->pci == PCI_NONE ? a->index < b->index : a->port < b->port;
}

/* Equal ones (MIG) stay in the claim's order: an insertion sort is stable. */
static void sort_gpus(struct inventory *inv)
{
    for (size_t i = 1; i < inv->gpu_count; i++)
        for (size_t j = i; j > 0 && inventory_comes_before(&inv->gpus[j], &inv->gpus[j - 1]); j--) {
            struct device swapped = inv->gpus[j];
            inv->gpus[j] = inv->gpus[j - 1];
            inv->gpus[j - 1] = swapped;
        }
}

static void sort_nics(struct inventory *inv)
{
    for (size_t i = 1; i < inv->nic_count; i++)
        for (size_t j = i;
             j > 0 && inventory_comes_before(&inv->nics[j].device, &inv->nics[j - 1].device); j--) {
            struct inventory_nic swapped = inv->nics[j];
            inv->nics[j] = inv->nics[j - 1];
            inv->nics[j - 1] = swapped;
        }
}

void reading_sort(struct reading *r)
{
    sort_gpus(r->inv);
    sort_nics(r->inv);
}

/* ---- what a NIC is ---- */

/* What the pod shows of a device: what is at its address, of several there, as sub-functions are,
 * what has its name; where one of the addresses is not known the name alone tells. NULL: nothing.
 */
static const struct probe_ibdev *probed_nic(const struct inventory *inv,
                                            const struct device *device)
{
    const struct probe_ibdev *at = NULL, *called = NULL;
    for (size_t i = 0; i < inv->probe.ibdev_count; i++) {
        const struct probe_ibdev *ib = &inv->probe.ibdevs[i];
        bool unknown = device->pci == PCI_NONE || ib->pci == PCI_NONE;
        bool named = device->ibdev && strcmp(ib->name, device->ibdev) == 0;
        bool here = !unknown && ib->pci == device->pci;
        if (here && named)
            return ib;
        if (here && !at)
            at = ib;
        if (unknown && named)
            called = ib;
    }
    return at ? at : called;
}

/* Of a device that is one port of several, that port alone. */
static const struct topo_port *own_ports(const struct probe_ibdev *ib, const struct device *device,
                                         size_t *ret_count)
{
    *ret_count = 1;
    for (size_t i = 0; device->port && i < ib->port_count; i++)
        if (ib->ports[i].number == device->port)
            return &ib->ports[i];
    *ret_count = ib->port_count;
    return ib->ports;
}

/* Without a probe: InfiniBand is what says so, or an RDMA device that has no interface. */
static const char *link_layer(const struct probe_ibdev *ib, const struct device *device,
                              const struct topo_port *port)
{
    if (ib && ib->link_layer)
        return ib->link_layer;
    if (ib && port && port->link != TOPO_LINK_UNKNOWN)
        return topo_link_name(port->link);
    return device->encap_ib || !device->ifname ? "InfiniBand" : "Ethernet";
}

size_t inventory_nic_ports(const struct inventory_nic *nic, const struct topo_port **ret_ports)
{
    size_t found = 0;
    for (size_t i = 0; i < nic->port_count && i < DATA_NIC_PORTS_MAX; i++)
        if (nic->data_ports & 1u << i)
            ret_ports[found++] = &nic->ports[i];
    return found;
}

/* Its names, ports and speed. */
static void describe(const struct inventory *inv, struct inventory_nic *nic)
{
    const struct probe_ibdev *ib = probed_nic(inv, &nic->device);
    const char *interface = nic->device.pod_name ? nic->device.pod_name : nic->device.ifname;
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    nic->ibdev = ib ? ib->name : nic->device.ibdev;
    nic->label = nic->ibdev ? nic->ibdev : interface ? interface : nic->device.name;
    nic->port_count = 0;
    nic->ports = ib ? own_ports(ib, &nic->device, &nic->port_count) : NULL;
    nic->gid = ib ? ib->gid : -1;
    nic->iwarp = ib && ib->iwarp;
    size_t count = inventory_nic_ports(nic, ports);
    nic->link_layer = link_layer(ib, &nic->device, count ? ports[0] : NULL);
    for (size_t i = 0; i < count; i++)
        nic->mbps += ports[i]->rate_mbps;
}

/* ---- the choice ---- */

void reading_mark_rdma(struct reading *r)
{
    struct inventory *inv = r->inv;
    for (size_t n = 0; n < inv->nic_count; n++)
        if (probed_nic(inv, &inv->nics[n].device))
            inv->nics[n].device.rdma = true;
}

/* assumed: stands for the port of a device that the pod does not show, and must outlive facts. */
static struct data_nic facts_of(const struct inventory *inv, const struct inventory_nic *nic,
                                bool claimed, struct topo_port *assumed)
{
    const struct device *device = &nic->device;
    const struct probe_ibdev *ib = probed_nic(inv, device);
    const struct topo_port *ports = assumed;
    size_t port_count = 1;
    if (ib)
        ports = own_ports(ib, device, &port_count);
    *assumed =
        (struct topo_port){.number = 1, .link = rdma_link_parse(link_layer(NULL, device, NULL))};
    return (struct data_nic){
        .name = ib              ? ib->name
                : device->ibdev ? device->ibdev
                                : device->name,
        .ports = ports,
        .port_count = port_count,
        .uplink = ib ? ib->uplink : NULL,
        .claimed = claimed,
    };
}

static void leave_out(struct reading *r, const struct data_nic *facts,
                      const struct inventory_nic *nic)
{
    struct inventory *inv = r->inv;
    char reason[256];
    data_nic_reason(facts, reason, sizeof reason);
    inv->left[inv->left_count++] = (struct plan_left_nic){
        .device = nic->device,
        .ibdev = facts->name,
        .use = facts->use,
        .claimed = facts->claimed,
        .reason = plan_notes_text(r->notes, "%s", reason),
    };
}

void inventory_left(const struct inventory *inventory, struct buf *out)
{
    size_t count = inventory->left_count, shown = count > LEFT_SHOWN ? LEFT_SHOWN - 1 : count;
    for (size_t i = 0; i < shown; i++)
        buf_printf(out, "%s%s", i ? ", " : "", inventory->left[i].reason);
    if (shown < count)
        buf_printf(out, " and %zu others", count - shown);
}

static void warn_left(struct reading *r)
{
    const struct inventory *inv = r->inv;
    struct buf names = BUF_INIT;
    inventory_left(inv, &names);
    if (names.len)
        warnings_add(&r->notes->warnings, WARN_NIC_LEFT_OUT, (int32_t)r->worker, "%s", names.data);
    r->notes->pool.failed |= names.failed;
    buf_done(&names);
}

int reading_choose_nics(struct reading *r, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    size_t count = 0, all = inv->nic_count, kept = 0;
    bool claimed = r->in->workers[r->worker].claims != NULL;
    cleanup_free struct data_nic *facts = calloc(all + 1, sizeof *facts);
    cleanup_free struct topo_port *assumed = calloc(all + 1, sizeof *assumed);
    inv->left = calloc(all + 1, sizeof *inv->left);
    if (!facts || !assumed || !inv->left)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t n = 0; n < all; n++)
        if (inv->nics[n].device.rdma) {
            facts[count] = facts_of(inv, &inv->nics[n], claimed, &assumed[count]);
            count++;
        }
    data_nics_choose(facts, count);
    for (size_t n = 0, i = 0; n < all; n++) {
        struct inventory_nic nic = inv->nics[n];
        if (nic.device.rdma) {
            const struct data_nic *chosen = &facts[i++];
            if (chosen->use != NIC_USE_DATA) {
                leave_out(r, chosen, &nic);
                continue;
            }
            nic.data_ports = chosen->data_ports;
        }
        inv->nics[kept++] = nic;
    }
    inv->nic_count = kept;
    if (kept > NCCL_NICS_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG,
                          "worker %u has %zu NICs that can carry data, more than %u: claim those "
                          "that it is to use",
                          r->worker, kept, NCCL_NICS_MAX);
    for (size_t n = 0; n < kept; n++)
        describe(inv, &inv->nics[n]);
    warn_left(r);
    return 0;
}

/* ---- what they say ---- */

const struct inventory_nic *inventory_first_rdma(const struct inventory *inventory)
{
    for (size_t n = 0; n < inventory->nic_count; n++)
        if (inventory->nics[n].device.rdma)
            return &inventory->nics[n];
    return NULL;
}

const char *inventory_hip_number(const struct inventory *inventory, size_t gpu)
{
    json_t *entry = NULL;
    size_t i;
    json_array_foreach(inventory->probe.gpus, i, entry)
    {
        const char *pci = value_text(entry, "pci");
        if (pci && pci_parse(pci) == inventory->gpus[gpu].pci)
            return value_text(entry, "hip");
    }
    return NULL;
}

bool inventory_has_hip_numbers(const struct inventory *inventory)
{
    for (size_t g = 0; g < inventory->gpu_count; g++)
        if (!inventory_hip_number(inventory, g))
            return false;
    return true;
}
