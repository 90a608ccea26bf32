/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine type asks of claims and pods, by the name of its profile: whether GPU and NIC ever
 * share a PCIe root, whether RDMA is handed out by the whole node, and what the vendor mounts into
 * pods (docs/design/010-claims.md holds the sources). Known only where the spec names the profile:
 * with `nccl.profile: auto` nothing is known before the allocation. A pure table. */
#ifndef DRARUN_JOBS_MACHINE_H
#define DRARUN_JOBS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine_mount { /* a directory of the host, which must exist there */
    const char *name;  /* of the volume */
    const char *host, *pod;
};

#define MACHINE_MOUNTS_MAX 2

struct machine {
    const char *profile;
    const char *no_root; /* why pcieRoot of a GPU and a NIC are never equal; NULL: they may be */
    uint32_t gpus, nics; /* of a whole node; 0: several sizes exist */
    bool whole_node;     /* RDMA is never shared between pods of a node */
    struct machine_mount mounts[MACHINE_MOUNTS_MAX]; /* up to the first without a name */
};

/* NULL for "auto" and for a profile that has no rules here. */
const struct machine *machine_find(const char *profile);
/* The table: NULL past its end. */
const struct machine *machine_at(size_t i);

#endif
