/* SPDX-License-Identifier: Apache-2.0 */
/* From what the workers of a job say that they hold to the environment of their ranks: the plan,
 * the preflight, and what of both goes with the launch. For request_pods.prepare. Loop thread only.
 */
#ifndef DRARUN_LAUNCHER_JOB_PLAN_H
#define DRARUN_LAUNCHER_JOB_PLAN_H

#include "jobs/derive/plan.h"
#include "jobs/spec/spec.h"
#include "launcher/job/job.h"

/* Borrowed. */
struct job_plan_input {
    const struct job_spec *spec;
    struct plan_worker_input *workers; /* spec->workers of them; probe is filled in */
    const struct slices *slices;       /* NULL: none are known */
    bool slices_unknown;               /* plan.h */
    const json_t *node_labels;
    const uint32_t *rank_order;
    bool warn; /* the plan's warnings are said */
};

/* The paths that agents look for in their pods, and the vendors' scripts that they run there, so
 * that the plan can tell by them: appended. spec: NULL where there is none. */
int job_plan_look_for(const struct job_spec *spec, struct strlist *paths, struct strlist *scripts,
                      struct drarun_error *err);

/* A refusal has kind DRARUN_ERR_PREFLIGHT. */
int job_plan(struct job *job, const struct job_plan_input *input, struct drarun_error *err);

#endif
