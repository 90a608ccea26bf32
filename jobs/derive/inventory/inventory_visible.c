/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that no slice describes: what the pod shows stands for them. */
#include <string.h>

#include "jobs/derive/inventory/device_role.h"
#include "jobs/derive/plan_private.h"
#include "lib/doc/value.h"

/* Sysfs shows a container all GPUs of its node. Where the driver tells nothing
 * (/proc/driver/nvidia), whether the pod was given one is not known: it is taken for given where a
 * GPU was asked for. */
static bool is_the_nodes(const struct planning *p, uint32_t w, const json_t *gpu)
{
    return p->in->no_gpus && !p->plan->workers[w].gpu_asked &&
           !json_is_true(json_object_get(gpu, "usable"));
}

/* GPUs of a device plugin are in no claim: those that the pod shows. */
static int add_gpus(struct planning *p, uint32_t w, struct drarun_error *err)
{
    size_t i;
    json_t *entry;
    json_array_foreach(p->plan->workers[w].probe.gpus, i, entry)
    {
        const char *pci = value_text(entry, "pci");
        const char *uuid = value_text(entry, "uuid");
        const json_t *numa = json_object_get(entry, "numa");
        if (is_the_nodes(p, w, entry))
            continue;
        struct device device = {
            .kind = DEVICE_GPU,
            .pci = pci ? pci_parse(pci) : PCI_NONE,
            .numa = json_is_integer(numa) ? (int32_t)json_integer_value(numa) : -1,
            .index = (int32_t)i,
            .root = value_text(entry, "root"),
            .uuid = uuid,
            .name = uuid  ? uuid
                    : pci ? pci
                          : "gpu",
            .product = value_text(entry, "product"),
            .vendor = value_text(entry, "vendor"),
        };
        int rc = plan_add_device(p, w, &device, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_nics(struct planning *p, uint32_t w, struct drarun_error *err)
{
    const struct probe *probe = &p->plan->workers[w].probe;
    for (size_t i = 0; i < probe->ibdev_count; i++) {
        const struct probe_ibdev *ib = &probe->ibdevs[i];
        struct device device = {
            .kind = DEVICE_NIC,
            .name = ib->name,
            .pci = ib->pci,
            .root = ib->root,
            .numa = ib->numa,
            .index = -1,
            .rdma = true,
            .ibdev = ib->name,
            .ifname = ib->netdev,
        };
        int rc = plan_add_device(p, w, &device, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Our own claims name their requests so (010); in others the driver's name has to tell, or the
 * request's. */
enum device_kind plan_role(const struct allocation_result *r)
{
    enum device_kind kind = device_role(r->driver);
    if (kind == DEVICE_CHANNEL)
        return kind;
    enum device_kind wanted = device_role(r->request);
    return wanted != DEVICE_OTHER ? wanted : kind;
}

int plan_add_unread(struct planning *p, uint32_t w, const struct allocation_result *r,
                    struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    struct device device = {.kind = plan_role(r),
                            .name = r->device,
                            .pod_name = r->pod_name,
                            .addressed = json_array_size(r->ips) > 0,
                            .pci = PCI_NONE,
                            .numa = -1,
                            .index = -1};
    worker->gpu_asked |= device.kind == DEVICE_GPU;
    worker->unread_gpus += device.kind == DEVICE_GPU;
    worker->unread_nics += device.kind == DEVICE_NIC;
    if (device.kind == DEVICE_GPU || (device.kind == DEVICE_NIC && worker->probe.ibdev_count > 0))
        return 0; /* plan_add_seen brings them */
    return plan_add_device(p, w, &device, err);
}

/* Where the pod shows more GPUs than it may use, which are its own is not known. */
static bool is_ambiguous(const struct plan_worker *worker)
{
    return worker->unread_gpus > 0 && json_array_size(worker->probe.gpus) > worker->unread_gpus;
}

int plan_add_seen(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    int rc = 0;
    if (is_ambiguous(worker))
        worker->plugin_gpus = worker->unread_gpus;
    else if (worker->gpu_count == 0)
        rc = add_gpus(p, w, err);
    if (rc == 0 && (!p->in->workers[w].claims || worker->unread_nics > 0))
        rc = add_nics(p, w, err);
    return rc;
}
