/* SPDX-License-Identifier: Apache-2.0 */
/* drarun_plan_build from objects that were read already, as a cluster's. */
#ifndef DRARUN_LAUNCHER_API_PLAN_H
#define DRARUN_LAUNCHER_API_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/plan.h"
#include "launcher/files/cluster_files.h"

struct plan_objects {
    json_t *slices, *nodes, *classes, *claims, *rules, *quotas, *limit_ranges, *config_maps,
        *node_pools;  /* arrays */
    bool known;       /* what slices there are is known */
    bool nodes_known; /* nodes are all of the cluster's, and so for the others */
    bool classes_known;
    bool quotas_known; /* quotas and limit_ranges are all of the namespace's */
    bool ranges_known;
    unsigned minor; /* of the cluster's Kubernetes 1.MINOR; 0: not known */
};

void plan_objects_init(struct plan_objects *objects);
void plan_objects_done(struct plan_objects *objects);
enum plan_kind {
    PLAN_SLICES,
    PLAN_NODES,
    PLAN_CLASSES,
    PLAN_CLAIMS,
    PLAN_TAINT_RULES,
    PLAN_QUOTAS,
    PLAN_LIMIT_RANGES,
    PLAN_CONFIG_MAPS,
    PLAN_NODE_POOLS,
    PLAN_KINDS
};
/* Where objects of which kind go, by enum plan_kind. -ENOMEM: there was no memory for the arrays.
 */
int plan_objects_kinds(struct plan_objects *objects, struct cluster_kind kinds[PLAN_KINDS],
                       struct drarun_error *err);

/* Of the options nccl_version, workers and kubernetes; takes the objects, also on failure. */
int plan_new_take(const struct drarun_spec *spec, const struct drarun_plan_options *options,
                  struct plan_objects *objects, struct drarun_plan **ret_plan,
                  struct drarun_error *err);
/* drarun_plan_svg, with what the check of the job's NICs found (jobs/preflight/fabric.h); NULL: not
 * known. A value of other workers than the plan's has kind DRARUN_ERR_USAGE. */
int plan_svg(const struct drarun_plan *plan, unsigned worker, const json_t *fabric, char **ret_svg,
             struct drarun_error *err);

#endif
