/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of an inventory: what is put into them, their order, and what they say. */
#include <errno.h>
#include <stdlib.h>

#include "jobs/derive/inventory/inventory_private.h"
#include "jobs/derive/nccl/nccl_topology.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

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
    if (rc == 0 && (inv->gpu_count > NCCL_GPUS_MAX || inv->nic_count > NCCL_NICS_MAX))
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "worker %u has more than %u GPUs or %u NICs",
                          r->worker, NCCL_GPUS_MAX, NCCL_NICS_MAX);
    return rc;
}

/* ---- the order ---- */

bool inventory_comes_before(const struct device *a, const struct device *b)
{
    if (a->pci != b->pci)
        return a->pci < b->pci;
    return a->pci == PCI_NONE && a->index < b->index;
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
