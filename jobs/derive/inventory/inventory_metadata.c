/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata files among the inputs: the last of them, for what the pod, the claims' status
 * and the slices do not say. */
#include <string.h>

#include "jobs/derive/plan_private.h"

static void not_used(struct planning *p, uint32_t w, const struct metadata_device *m,
                     const char *why)
{
    warnings_add(&p->notes->warnings, WARN_METADATA_NOT_USED, (int32_t)w,
                 "device %s of claim %s: %s", m->slice.name, m->claim, why);
}

int plan_read_metadata(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    size_t i;
    json_t *text;
    json_array_foreach(worker->probe.metadata_errors, i, text) warnings_add(
        &p->notes->warnings, WARN_METADATA_NOT_USED, (int32_t)w, "%s", json_string_value(text));
    return metadata_read(worker->probe.metadata, &worker->metadata, err);
}

static bool read_device(struct planning *p, uint32_t w, const struct metadata_device *m,
                        struct device *ret_device)
{
    struct drarun_error err = {0};
    if (device_read(&m->slice, ret_device, &err) == 0) {
        ret_device->pod_name = m->pod_name;
        ret_device->addressed = m->addressed;
        return true;
    }
    not_used(p, w, m, err.text);
    return false;
}

bool plan_metadata_device(struct planning *p, uint32_t w, const struct allocation_result *r,
                          struct device *ret_device)
{
    const struct metadata_device *m =
        metadata_find(&p->plan->workers[w].metadata, r->driver, r->pool, r->device);
    return m && read_device(p, w, m, ret_device);
}

void plan_metadata_fill(struct planning *p, uint32_t w, struct device *device,
                        const struct device *told)
{
    if (device->pci != PCI_NONE && told->pci != PCI_NONE && device->pci != told->pci)
        warnings_add(&p->notes->warnings, WARN_METADATA_NOT_USED, (int32_t)w,
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

static bool find_gpu(struct plan_worker *worker, const struct device *told)
{
    for (size_t g = 0; g < worker->gpu_count; g++)
        if (same_device(&worker->gpus[g].device, told)) {
            fill_seen(&worker->gpus[g].device, told);
            return true;
        }
    return false;
}

static bool find_nic(struct plan_worker *worker, const struct device *told)
{
    for (size_t n = 0; n < worker->nic_count; n++)
        if (same_device(&worker->nics[n].device, told)) {
            fill_seen(&worker->nics[n].device, told);
            return true;
        }
    return false;
}

int plan_join_metadata(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    bool no_gpu = worker->gpu_count == 0, no_nic = worker->nic_count == 0;
    for (size_t i = 0; i < worker->metadata.count; i++) {
        const struct metadata_device *m = &worker->metadata.list[i];
        struct device told;
        if (!read_device(p, w, m, &told) || told.kind == DEVICE_OTHER)
            continue;
        bool nic = told.kind == DEVICE_NIC;
        if (nic ? find_nic(worker, &told) : find_gpu(worker, &told))
            continue;
        /* a pod that shows none of a kind may just not be able to; one that shows others can */
        if (told.kind != DEVICE_CHANNEL && !(nic ? no_nic : no_gpu)) {
            not_used(p, w, m, "the pod does not show it");
            continue;
        }
        int rc = plan_add_device(p, w, &told, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
