/* SPDX-License-Identifier: Apache-2.0 */
/* A job before it runs: what each worker would claim and, where the cluster's ResourceSlices are
 * given, which devices it would get, which rank uses which, and the environment that follows. */
#ifndef DRARUN_PLAN_H
#define DRARUN_PLAN_H

#include "drarun/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_plan;

/* Files as `kubectl get ... -o json` or `-o yaml` prints them; one may hold objects of every kind.
 */
struct drarun_plan_options {
    size_t size;               /* of this struct */
    const char *const *slices; /* with ResourceSlices. NULL: the allocation is not predicted */
    const char *const *nodes, *const *classes, *const *claims; /* further Nodes, DeviceClasses, and
                                                                * ResourceClaims, which hold */
    const char *objects;      /* the same as text, in place of a file: of slices. NULL: none */
    const char *nccl_version; /* of the image's NCCL, "2.28.9". NULL: the spec's, else the newest */
    unsigned workers;         /* in place of the spec's; 0: the spec's */
    const char *kubernetes; /* whose scheduler's rules count, "1.36". NULL: the cluster's, else that
                             * of the newest kubelet of the Nodes, else the newest known */
};
DRARUN_DEFINE_INIT(drarun_plan_options)

/* A job that would find no room, and one whose plan is refused, are plans too:
 * drarun_plan_verdict. */
DRARUN_API int drarun_plan_build(const struct drarun_spec *spec,
                                 const struct drarun_plan_options *options,
                                 struct drarun_plan **ret_plan, struct drarun_error *err);
DRARUN_API void drarun_plan_free(struct drarun_plan *plan);

/* 0: nothing speaks against the job. Else -errno with the words: DRARUN_ERR_SPEC, the plan is
 * refused; DRARUN_ERR_CAPACITY, the cluster has no room for it. */
DRARUN_API int drarun_plan_verdict(const struct drarun_plan *plan, struct drarun_error *err);

/* As `drarun plan` prints it; explain: each variable with rule, fact, reason and source. NULL: out
 * of memory. */
DRARUN_API char *drarun_plan_text(const struct drarun_plan *plan, int explain);
DRARUN_API char *drarun_plan_json(const struct drarun_plan *plan, int explain);

/* A picture (SVG, with a background of its own) of the node that a worker, counted from 0, would be
 * on: its devices by NUMA node and host bridge, those of the worker marked and paired.
 * Kind DRARUN_ERR_USAGE: there is no such worker, or without ResourceSlices or devices no node;
 * DRARUN_ERR_CAPACITY: the workers have no room. */
DRARUN_API int drarun_plan_svg(const struct drarun_plan *plan, unsigned worker, char **ret_svg,
                               struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
