/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the inventory: how the sources of one worker's devices add to it. */
#ifndef DRARUN_JOBS_INVENTORY_PRIVATE_H
#define DRARUN_JOBS_INVENTORY_PRIVATE_H

#include "jobs/derive/inventory/allocation.h"
#include "jobs/derive/inventory/inventory.h"

struct reading {
    const struct plan_input *in;
    uint32_t worker;
    struct plan_notes *notes;
    struct inventory *inv; /* being filled */
    uint32_t found_nics;   /* of inv->unread_nics: by their interfaces in the pod */
};

/* inventory_devices.c: to the GPUs or the NICs; then both in their order. */
int reading_add_device(struct reading *r, const struct device *device, struct drarun_error *err);
void reading_sort(struct reading *r);
/* Keeps the NICs that carry data, leaves out and names the others, and says what those that are
 * kept are. */
int reading_choose_nics(struct reading *r, struct drarun_error *err);
/* A driver may not publish whether its NICs do RDMA; the pod shows it. */
void reading_mark_rdma(struct reading *r);

/* inventory_visible.c: what an allocated device is by its driver and request, DEVICE_OTHER where
 * neither says; an allocated device of which nothing but its name is known; then, for a worker
 * whose claims have been read, what its pod shows in place of those and of what no claim gives. */
enum device_kind reading_role(const struct allocation_result *result);
int reading_add_unread(struct reading *r, const struct allocation_result *result,
                       struct drarun_error *err);
int reading_add_visible(struct reading *r, struct drarun_error *err);

/* inventory_metadata.c */
int reading_metadata(struct reading *r, struct drarun_error *err);
/* What a file says of an allocated device; false: nothing that can be used. */
bool reading_metadata_device(struct reading *r, const struct allocation_result *result,
                             struct device *ret_device);
/* Adds what its slice does not say. */
void reading_metadata_fill(struct reading *r, struct device *device, const struct device *told);
/* Without claims: adds it to the devices that the pod shows. */
int reading_join_metadata(struct reading *r, struct drarun_error *err);

#endif
