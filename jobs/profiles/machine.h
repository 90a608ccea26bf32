/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine type asks of claims and pods: whether GPU and NIC ever share a PCIe root, whether
 * RDMA is handed out by the whole node, what the vendor mounts into pods, and what taint its nodes
 * have beside that of their devices. It is the key
 * "machine" of a profile (jobs/profiles/profiles.h; sources: docs/design/010-claims.md). Known
 * where the spec names the profile, or nodes do before the allocation (jobs/predict/job_profile.h).
 * Pure. */
#ifndef DRARUN_JOBS_MACHINE_H
#define DRARUN_JOBS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "jobs/profiles/profiles.h"

struct machine_mount { /* a directory of the host, which must exist there */
    const char *name;  /* of the volume */
    const char *host, *pod;
};

/* A taint with the effect NoSchedule of the machine's nodes; key NULL: none is known. */
struct machine_taint {
    const char *key, *value;
    const char *nodes; /* that have it, for people */
};

#define MACHINE_MOUNTS_MAX 4u

/* All zero: no rules. Texts are held by `rules`. */
struct machine {
    const char *profile;
    const char *no_root;   /* why pcieRoot of a GPU and a NIC are never equal; NULL: they may be */
    const char *gpu_class; /* DeviceClass of its GPUs; NULL: that of NVIDIA's */
    uint32_t gpus, nics;   /* of a whole node; 0: several sizes exist */
    bool whole_node;       /* RDMA is never shared between pods of a node */
    struct machine_mount mounts[MACHINE_MOUNTS_MAX]; /* up to the first without a name */
    struct machine_taint taint;
    json_t *name, *rules; /* owned */
};

/* The rules of a profile; all zero for NULL, for "auto", for an unknown one and for one without
 * rules. -ENOMEM; what ret_machine held is not released. */
int machine_read(const struct profiles *profiles, const char *profile, struct machine *ret_machine,
                 struct drarun_error *err);
/* The same from the built-in table, which is parsed only where a profile is named. */
int machine_builtin(const char *profile, struct machine *ret_machine, struct drarun_error *err);
void machine_done(struct machine *machine);

#endif
