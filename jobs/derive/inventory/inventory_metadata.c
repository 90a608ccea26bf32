/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata files among the inputs: the last of them, for what the pod, the claims' status
 * and the slices do not say. */
#include <string.h>

#include "jobs/derive/inventory/inventory_private.h"

static void not_used(struct reading *r, const struct metadata_device *m, const char *why)
{
    warnings_add(&r->notes->warnings, WARN_METADATA_NOT_USED, (int32_t)r->worker,
                 "device %s of claim %s: %s", m->slice.name, m->claim, why);
}

int reading_metadata(struct reading *r, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    size_t i;
    json_t *text;
    json_array_foreach(inv->probe.metadata_errors, i, text)
        warnings_add(&r->notes->warnings, WARN_METADATA_NOT_USED, (int32_t)r->worker, "%s",
                     json_string_value(text));
    return metadata_read(inv->probe.metadata, &inv->metadata, err);
}

static bool read_device(struct reading *r, const struct metadata_device *m,
                        struct device *ret_device)
{
    struct drarun_error err = {0};
    if (device_read(&m->slice, ret_device, &err) == 0) {
        ret_device->pod_name = m->pod_name;
        ret_device->addressed = m->addressed;
        return true;
    }
    not_used(r, m, err.text);
    return false;
}

bool reading_metadata_device(struct reading *r, const struct allocation_result *result,
                             struct device *ret_device)
{
    const struct metadata_device *m =
        metadata_find(&r->inv->metadata, result->driver, result->pool, result->device);
    return m && read_device(r, m, ret_device);
}

void reading_metadata_fill(struct reading *r, struct device *device, const struct device *told)
{
    if (device->pci != PCI_NONE && told->pci != PCI_NONE && device->pci != told->pci)
        warnings_add(&r->notes->warnings, WARN_METADATA_NOT_USED, (int32_t)r->worker,
                     "device %s: its metadata file has another PCI address than its slice",
                     told->name);
    else
        device_fill(device, told);
}

/* ---- without claims: the devices that the pod shows, and what the files know of them ---- */

static bool same_device(const struct device *seen, const struct device *told)
{
    if (seen->pci != PCI_NONE && told->pci != PCI_NONE)
        return seen->pci == told->pci;
    if (seen->uuid && told->uuid)
        return strcmp(seen->uuid, told->uuid) == 0;
    return seen->ibdev && told->ibdev && strcmp(seen->ibdev, told->ibdev) == 0;
}

/* The driver knows the interface by its name on the host, which tells the rail. */
static void fill_seen(struct device *seen, const struct device *told)
{
    if (told->ifname && seen->ifname) {
        seen->pod_name = seen->ifname;
        seen->ifname = told->ifname;
    }
    device_fill(seen, told);
}

static bool find_gpu(struct inventory *inv, const struct device *told)
{
    for (size_t g = 0; g < inv->gpu_count; g++)
        if (same_device(&inv->gpus[g], told)) {
            fill_seen(&inv->gpus[g], told);
            return true;
        }
    return false;
}

static bool same_name(const struct device *seen, const struct device *told)
{
    return seen->ibdev && told->ibdev && strcmp(seen->ibdev, told->ibdev) == 0;
}

static bool is_other_port(const struct device *seen, const struct device *told)
{
    return seen->port && told->port && seen->port != told->port;
}

/* Of several at one address, as sub-functions are, the one of its name; NULL. */
static struct device *find_nic(struct inventory *inv, const struct device *told)
{
    struct device *at = NULL;
    for (size_t n = 0; n < inv->nic_count; n++) {
        struct device *seen = &inv->nics[n].device;
        if (!same_device(seen, told))
            continue;
        if (same_name(seen, told) && !is_other_port(seen, told))
            return seen;
        if (!at || same_name(seen, told))
            at = seen;
    }
    return at;
}

/* The pod shows a card once, whichever of its ports are in its claims. */
static int join_nic(struct reading *r, struct device *seen, struct device *told,
                    struct drarun_error *err)
{
    const char *pod_name = told->pod_name;
    if (!is_other_port(seen, told)) {
        fill_seen(seen, told);
        return 0;
    }
    device_fill(told, seen);
    told->pod_name = pod_name;
    return reading_add_device(r, told, err);
}

int reading_join_metadata(struct reading *r, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    bool no_gpu = inv->gpu_count == 0, no_nic = inv->nic_count == 0;
    for (size_t i = 0; i < inv->metadata.count; i++) {
        const struct metadata_device *m = &inv->metadata.list[i];
        struct device told;
        if (!read_device(r, m, &told) || told.kind == DEVICE_OTHER)
            continue;
        bool nic = told.kind == DEVICE_NIC;
        struct device *seen = nic ? find_nic(inv, &told) : NULL;
        int rc = seen ? join_nic(r, seen, &told, err) : 0;
        if (rc < 0)
            return rc;
        if (seen || (!nic && find_gpu(inv, &told)))
            continue;
        /* a pod that shows none of a kind may just not be able to; one that shows others can */
        if (told.kind != DEVICE_CHANNEL && !(nic ? no_nic : no_gpu)) {
            not_used(r, m, "the pod does not show it");
            continue;
        }
        rc = reading_add_device(r, &told, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
