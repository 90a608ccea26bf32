/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceSlices as an index from (driver, pool, device) to the device's attributes. The newest
 * generation of a pool wins, as the scheduler has it (resource.k8s.io, ResourcePool.generation).
 * Pure; read-only after reading, from any thread. */
#ifndef DRARUN_DRA_SLICES_H
#define DRARUN_DRA_SLICES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

struct slice_device { /* all borrowed from the documents */
    const char *driver, *pool, *name;
    const char *slice;        /* whose it is, as slice_part.name; NULL outside of struct slices */
    const char *node;         /* NULL: not bound to one node */
    const json_t *attributes; /* an object, or NULL */
    const json_t *capacity;
    const json_t *taints; /* an array, or NULL */
};

struct slice_pool {
    const char *driver, *name;
    int64_t generation; /* the newest */
    int64_t expected;   /* slices that the pool says it has */
    int64_t seen;       /* of that generation */
};

/* One slice as it is, of whatever generation. */
struct slice_part {
    const char *name, *driver, *pool; /* name: "(no name)" for one without */
    const char *node;                 /* spec.nodeName, or NULL */
    int64_t generation, expected;     /* expected: spec.pool.resourceSliceCount */
    const json_t *spec, *devices;     /* devices: an array, or NULL */
};

struct slices {
    struct slice_part *parts; /* by driver, pool, the newest generation first, then name */
    size_t part_count;
    struct slice_device *devices; /* by node, the ones without a node first; then as read */
    size_t device_count;
    struct slice_pool *pools;
    size_t pool_count;
    uint32_t *table; /* open addressing: index + 1 into devices, 0 empty */
    size_t table_size;
    json_t *documents; /* keeps the values above alive */
};

/* document: a ResourceSlice, a List or ResourceSliceList of them (as kubectl prints), or an array
 * of such; API versions v1, v1beta2 and v1beta1 ("basic"). Other kinds in a List are passed over.
 * It is referenced, not copied. A name that slices of one pool give to different devices is in
 * parts alone: which device is meant is not known. -EINVAL names the slice and what was expected: a
 * missing driver or pool, and one slice twice with different devices of a name. */
int slices_read(json_t *document, struct slices *ret_slices, struct drarun_error *err);
void slices_done(struct slices *slices);

/* A document of what was read at two times. Drivers take back what a pod uses: a device, or some of
 * its attributes. So a pool's slices are those of `earlier`, unless `later` has a new device there.
 * Then they are those of `later`, and each device that has gone or has lost attributes is as
 * `earlier` has it. A new reference that borrows nothing; NULL without memory. */
json_t *slices_join(const struct slices *earlier, const struct slices *later);

/* What a slice says of a device: its own fields, those under `basic` in v1beta1. */
const json_t *slice_device_body(const json_t *device);

/* NULL when no current slice has it. */
const struct slice_device *slices_find(const struct slices *slices, const char *driver,
                                       const char *pool, const char *device);
const struct slice_pool *slices_pool(const struct slices *slices, const char *driver,
                                     const char *pool);
/* Fewer slices of the newest generation than the pool announces: a device may be missing. */
bool slice_pool_incomplete(const struct slice_pool *pool);
/* The devices of a node: ret_count of them from the returned one. */
const struct slice_device *slices_of_node(const struct slices *slices, const char *node,
                                          size_t *ret_count);

#endif
