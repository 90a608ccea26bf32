/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a worker's RDMA NICs carry data, by the rule that `drarun topo` has
 * (lib/topo/data_nics.h), and what each of them is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/inventory_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/rdma_text.h"

/* What the pod shows of a device; NULL. */
static const struct probe_ibdev *probed_nic(const struct inventory *inv,
                                            const struct device *device)
{
    for (size_t i = 0; i < inv->probe.ibdev_count; i++) {
        const struct probe_ibdev *ib = &inv->probe.ibdevs[i];
        if (device->pci != PCI_NONE && ib->pci == device->pci)
            return ib;
    }
    for (size_t i = 0; device->ibdev && i < inv->probe.ibdev_count; i++) {
        const struct probe_ibdev *ib = &inv->probe.ibdevs[i];
        if (ib->pci == PCI_NONE && strcmp(ib->name, device->ibdev) == 0)
            return ib;
    }
    return NULL;
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

/* ---- what a NIC is ---- */

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
    nic->ports = ib ? ib->ports : NULL;
    nic->port_count = ib ? ib->port_count : 0;
    nic->gid = ib ? ib->gid : -1;
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
    *assumed =
        (struct topo_port){.number = 1, .link = rdma_link_parse(link_layer(NULL, device, NULL))};
    return (struct data_nic){
        .name = ib              ? ib->name
                : device->ibdev ? device->ibdev
                                : device->name,
        .ports = ib ? ib->ports : assumed,
        .port_count = ib ? ib->port_count : 1,
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
    for (size_t i = 0; i < inventory->left_count; i++)
        buf_printf(out, "%s%s", i ? ", " : "", inventory->left[i].reason);
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
    for (size_t n = 0; n < kept; n++)
        describe(inv, &inv->nics[n]);
    warn_left(r);
    return 0;
}
