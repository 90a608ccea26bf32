/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a worker's RDMA NICs carry data, by the rule that `drarun topo` has
 * (lib/topo/data_nics.h), and what each of them is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/plan_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/rdma_text.h"

const struct probe_ibdev *plan_probed_nic(const struct plan_worker *worker,
                                          const struct device *device)
{
    for (size_t i = 0; i < worker->probe.ibdev_count; i++) {
        const struct probe_ibdev *ib = &worker->probe.ibdevs[i];
        if (device->pci != PCI_NONE && ib->pci == device->pci)
            return ib;
    }
    for (size_t i = 0; device->ibdev && i < worker->probe.ibdev_count; i++) {
        const struct probe_ibdev *ib = &worker->probe.ibdevs[i];
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

/* ---- the choice ---- */

/* assumed: stands for the port of a device that the pod does not show, and must outlive facts. */
static struct data_nic facts_of(const struct plan_worker *worker, const struct plan_nic *nic,
                                bool claimed, struct topo_port *assumed)
{
    const struct device *device = &nic->device;
    const struct probe_ibdev *ib = plan_probed_nic(worker, device);
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

static void leave_out(struct planning *p, struct plan_worker *worker, const struct data_nic *facts,
                      const struct plan_nic *nic)
{
    char reason[256];
    data_nic_reason(facts, reason, sizeof reason);
    worker->left[worker->left_count++] = (struct plan_left_nic){
        .device = nic->device,
        .ibdev = facts->name,
        .use = facts->use,
        .claimed = facts->claimed,
        .reason = plan_notes_text(p->notes, "%s", reason),
    };
}

void plan_left_nics(const struct plan_worker *worker, struct buf *out)
{
    for (size_t i = 0; i < worker->left_count; i++)
        buf_printf(out, "%s%s", i ? ", " : "", worker->left[i].reason);
}

static void warn_left(struct planning *p, uint32_t w)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    struct buf names = BUF_INIT;
    plan_left_nics(worker, &names);
    if (names.len)
        warnings_add(&p->notes->warnings, WARN_NIC_LEFT_OUT, (int32_t)w, "%s", names.data);
    p->notes->pool.failed |= names.failed;
    buf_done(&names);
}

int plan_choose_nics(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    size_t count = 0, all = worker->nic_count, kept = 0;
    bool claimed = p->in->workers[w].claims != NULL;
    cleanup_free struct data_nic *facts = calloc(all + 1, sizeof *facts);
    cleanup_free struct topo_port *assumed = calloc(all + 1, sizeof *assumed);
    worker->left = calloc(all + 1, sizeof *worker->left);
    if (!facts || !assumed || !worker->left)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t n = 0; n < all; n++)
        if (worker->nics[n].device.rdma) {
            facts[count] = facts_of(worker, &worker->nics[n], claimed, &assumed[count]);
            count++;
        }
    data_nics_choose(facts, count);
    for (size_t n = 0, i = 0; n < all; n++) {
        struct plan_nic nic = worker->nics[n];
        if (nic.device.rdma) {
            const struct data_nic *chosen = &facts[i++];
            if (chosen->use != NIC_USE_DATA) {
                leave_out(p, worker, chosen, &nic);
                continue;
            }
            nic.data_ports = chosen->data_ports;
        }
        worker->nics[kept++] = nic;
    }
    worker->nic_count = kept;
    warn_left(p, w);
    return 0;
}

/* ---- what a NIC is ---- */

size_t plan_nic_ports(const struct plan_nic *nic, const struct topo_port **ret_ports)
{
    size_t count = 0;
    for (size_t i = 0; i < nic->port_count && i < DATA_NIC_PORTS_MAX; i++)
        if (nic->data_ports & 1u << i)
            ret_ports[count++] = &nic->ports[i];
    return count;
}

/* Mb/s of all its ports that carry data; 0: not known. */
static uint32_t rate_of(const struct plan_nic *nic)
{
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    size_t count = plan_nic_ports(nic, ports);
    uint32_t mbps = 0;
    for (size_t i = 0; i < count; i++)
        mbps += ports[i]->rate_mbps;
    return mbps;
}

void plan_describe_nic(const struct plan_worker *worker, double nominal_gbs, struct plan_nic *nic)
{
    const struct probe_ibdev *ib = plan_probed_nic(worker, &nic->device);
    const char *interface = nic->device.pod_name ? nic->device.pod_name : nic->device.ifname;
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    nic->ibdev = ib ? ib->name : nic->device.ibdev;
    nic->ports = ib ? ib->ports : NULL;
    nic->port_count = ib ? ib->port_count : 0;
    size_t count = plan_nic_ports(nic, ports);
    nic->gid = ib ? ib->gid : -1;
    nic->link_layer = link_layer(ib, &nic->device, count ? ports[0] : NULL);
    uint32_t mbps = rate_of(nic);
    nic->speed_known = mbps > 0;
    nic->gbs = nic->speed_known ? mbps / 8000.0 : nominal_gbs > 0 ? nominal_gbs : 50.0;
    nic->label = nic->ibdev ? nic->ibdev : interface ? interface : nic->device.name;
}
