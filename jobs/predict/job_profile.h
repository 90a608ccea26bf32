/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a job with `nccl.profile: auto`, known before its workers have nodes: what its
 * vendor keeps on nodes is mounted into pods, and pods are written before they are placed. Named
 * where it is certain: by the template's nodeSelector, or since all nodes that could take a worker
 * are of one profile (docs/design/010-claims.md). Pure. */
#ifndef DRARUN_JOBS_JOB_PROFILE_H
#define DRARUN_JOBS_JOB_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/predict/nodes_profile.h"
#include "jobs/profiles/profiles.h"
#include "lib/dra/slices.h"
#include "jobs/spec/spec.h"

struct job_profile_cluster {
    const struct slices *slices; /* NULL: of the nodes nothing is known */
    const json_t *nodes;         /* an array of Nodes, which may have metadata alone; NULL: those
                                  * that slices name */
    const json_t *classes;       /* an array of DeviceClasses; NULL: well-known ones alone */
    unsigned minor;              /* of Kubernetes, as in struct predict_cluster */
};

/* Whether it matters: NICs are asked for, claimed or of a device plugin, and the profile is auto.
 * Of a document with roles each is to name its own. */
bool job_profile_is_open(const struct job_spec *spec);

/* Finds it, and writes its name into spec.nccl.profile, also of the document, where the profile has
 * rules for claims and pods; ret_found may be NULL. Devices that others hold, taints and cordons
 * count for nothing: they pass. cluster NULL: by nodeSelector alone. No change for a job that is
 * not open, and for one whose machine is not known. The spec's document must be its own. -ENOMEM.
 */
int job_profile_settle(struct job_spec *spec, const struct profiles *profiles,
                       const struct job_profile_cluster *cluster, struct nodes_profile *ret_found,
                       struct drarun_error *err);

/* What a user is told of an open job whose machine is not known; size: of ret_text. */
void job_profile_ask(const struct nodes_profile *found, char *ret_text, size_t size);

#endif
