/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that no slice describes: what the pod shows stands for them. */
#include <string.h>

#include "jobs/derive/inventory/device_role.h"
#include "jobs/derive/inventory/inventory_private.h"
#include "lib/doc/value.h"

/* Sysfs shows a container all GPUs of its node. Where the driver tells nothing
 * (/proc/driver/nvidia), whether the pod was given one is not known: it is taken for given where a
 * GPU was asked for. */
static bool is_the_nodes(const struct reading *r, const json_t *gpu)
{
    return r->in->no_gpus && !r->inv->gpu_asked && !json_is_true(json_object_get(gpu, "usable"));
}

/* GPUs of a device plugin are in no claim: those that the pod shows. */
static int add_gpus(struct reading *r, struct drarun_error *err)
{
    size_t i;
    json_t *entry;
    json_array_foreach(r->inv->probe.gpus, i, entry)
    {
        const char *pci = value_text(entry, "pci");
        const char *uuid = value_text(entry, "uuid");
        const json_t *numa = json_object_get(entry, "numa");
        if (is_the_nodes(r, entry))
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
        int rc = reading_add_device(r, &device, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct device device_of(const struct probe_ibdev *ib)
{
    return (struct device){
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
}

/* Its interface, or its driver's metadata file, has told it already. */
static bool is_there(const struct inventory *inv, const struct probe_ibdev *ib)
{
    for (size_t n = 0; n < inv->nic_count; n++) {
        const struct device *device = &inv->nics[n].device;
        if (device->ibdev ? strcmp(device->ibdev, ib->name) == 0
                          : device->pci != PCI_NONE && device->pci == ib->pci)
            return true;
    }
    return false;
}

static int add_nics(struct reading *r, struct drarun_error *err)
{
    const struct probe *probe = &r->inv->probe;
    for (size_t i = 0; i < probe->ibdev_count; i++) {
        const struct device device = device_of(&probe->ibdevs[i]);
        int rc = is_there(r->inv, &probe->ibdevs[i]) ? 0 : reading_add_device(r, &device, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Our own claims name their requests so (010); in others the driver's name has to tell, or the
 * request's. */
enum device_kind reading_role(const struct allocation_result *result)
{
    enum device_kind kind = device_role(result->driver);
    if (kind == DEVICE_CHANNEL)
        return kind;
    enum device_kind wanted = device_role(result->request);
    return wanted != DEVICE_OTHER ? wanted : kind;
}

/* NULL: nothing has it. */
static const struct probe_ibdev *find_interface(const struct probe *probe, const char *name)
{
    for (size_t i = 0; i < probe->ibdev_count; i++) {
        const char *netdev = probe->ibdevs[i].netdev;
        if (netdev && strcmp(netdev, name) == 0)
            return &probe->ibdevs[i];
    }
    return NULL;
}

/* A pod that may use every device of its node shows more than it has claimed. 1: not found. */
static int add_by_interface(struct reading *r, const struct device *claimed,
                            struct drarun_error *err)
{
    const struct probe_ibdev *ib = claimed->kind == DEVICE_NIC && claimed->pod_name
                                       ? find_interface(&r->inv->probe, claimed->pod_name)
                                       : NULL;
    if (!ib)
        return 1;
    struct device device = device_of(ib);
    device.pod_name = claimed->pod_name;
    device.addressed = claimed->addressed;
    if (is_there(r->inv, ib)) { /* another share of it */
        r->inv->unread_nics--;
        return 0;
    }
    r->found_nics++;
    return reading_add_device(r, &device, err);
}

int reading_add_unread(struct reading *r, const struct allocation_result *result,
                       struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    struct device device = {.kind = reading_role(result),
                            .name = result->device,
                            .pod_name = result->pod_name,
                            .addressed = json_array_size(result->ips) > 0,
                            .pci = PCI_NONE,
                            .numa = -1,
                            .index = -1};
    inv->gpu_asked |= device.kind == DEVICE_GPU;
    inv->unread_gpus += device.kind == DEVICE_GPU;
    inv->unread_nics += device.kind == DEVICE_NIC;
    int rc = add_by_interface(r, &device, err);
    if (rc <= 0)
        return rc;
    if (device.kind == DEVICE_GPU || (device.kind == DEVICE_NIC && inv->probe.ibdev_count > 0))
        return 0; /* reading_add_visible brings them */
    return reading_add_device(r, &device, err);
}

/* Where the pod shows more GPUs than it may use, which are its own is not known. */
static bool is_ambiguous(const struct inventory *inv)
{
    return inv->unread_gpus > 0 && json_array_size(inv->probe.gpus) > inv->unread_gpus;
}

int reading_add_visible(struct reading *r, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    int rc = 0;
    if (is_ambiguous(inv))
        inv->plugin_gpus = inv->unread_gpus;
    else if (inv->gpu_count == 0)
        rc = add_gpus(r, err);
    if (rc == 0 && (!r->in->workers[r->worker].claims || inv->unread_nics > r->found_nics))
        rc = add_nics(r, err);
    return rc;
}
