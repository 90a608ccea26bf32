/* SPDX-License-Identifier: Apache-2.0 */
/* A job before it runs: what each worker would claim. Given the cluster's ResourceSlices, also
 * which devices each worker would get, which rank would use which device, and the resulting
 * environment. */
#ifndef DRARUN_PLAN_H
#define DRARUN_PLAN_H

#include "drarun/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_plan;

/* Files as printed by `kubectl get ... -o json` or `-o yaml`. One file may hold objects of several
 * kinds. */
struct drarun_plan_options {
    size_t size;               /* of this struct */
    const char *const *slices; /* with ResourceSlices. NULL: the allocation is not predicted */
    const char *const *nodes, *const *classes, *const *claims; /* Nodes, DeviceClasses,
                                                                * existing ResourceClaims */
    const char *objects;      /* the same as text instead of a file of slices. NULL: none */
    const char *nccl_version; /* the image's NCCL, "2.28.9". NULL: the spec's, else the newest */
    unsigned workers;         /* overrides the spec's; 0: the spec's */
    /* The version whose scheduler rules apply, such as "1.36". NULL: the cluster's, else that of
     * the Nodes' newest kubelet, else the newest known. */
    const char *kubernetes;
};
DRARUN_DEFINE_INIT(drarun_plan_options)

/* Succeeds even if the cluster has no room for the job or the plan is rejected: see
 * drarun_plan_verdict. */
DRARUN_API int drarun_plan_build(const struct drarun_spec *spec,
                                 const struct drarun_plan_options *options,
                                 struct drarun_plan **ret_plan, struct drarun_error *err);
DRARUN_API void drarun_plan_free(struct drarun_plan *plan);

/* Returns 0 if the job can run. Otherwise returns -errno and the reason. Kind DRARUN_ERR_SPEC: the
 * plan is rejected; DRARUN_ERR_CAPACITY: the cluster has no room for the job. */
DRARUN_API int drarun_plan_verdict(const struct drarun_plan *plan, struct drarun_error *err);

/* Return the plan as `drarun plan` prints it. explain: show the rule, fact, reason and source of
 * each variable. Return NULL if out of memory. */
DRARUN_API char *drarun_plan_text(const struct drarun_plan *plan, int explain);
DRARUN_API char *drarun_plan_json(const struct drarun_plan *plan, int explain);

/* Returns a picture (SVG, with its own background) of the node that a worker, counted from 0, would
 * run on: its devices by NUMA node and host bridge, with those of the worker marked and paired.
 * Kind DRARUN_ERR_USAGE: there is no such worker, or no node is known because ResourceSlices or
 * devices are missing; DRARUN_ERR_CAPACITY: there is no room for the workers. */
DRARUN_API int drarun_plan_svg(const struct drarun_plan *plan, unsigned worker, char **ret_svg,
                               struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
