/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the workers of a role get a node each (spec.placement.spread; docs/design/010-claims.md,
 * "One worker per node"), and the term of their pods that makes the scheduler see to it. Pure. */
#ifndef DRARUN_JOBS_NODE_SPREAD_H
#define DRARUN_JOBS_NODE_SPREAD_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/dra/predict.h"
#include "jobs/spec/spec.h"

#define NODE_SPREAD_LABEL "drarun.dev/spread" /* of the pods that keep apart; its value: */
#define NODE_SPREAD_LABEL_VALUE "node"
#define NODE_SPREAD_KEY "placement.spread"
#define NODE_SPREAD_TOPOLOGY "kubernetes.io/hostname"

enum node_spread {
    NODE_SPREAD_NONE = 1,    /* several workers may be on one node */
    NODE_SPREAD_BY_SPEC,     /* one worker per node: the key says so, or is left out */
    NODE_SPREAD_BY_TEMPLATE, /* one worker per node: the template's own podAntiAffinity */
};

/* An enum node_spread. foreign: the pods of another system (POD_MERGE_FOREIGN), which have fewer
 * labels that a term of the template could select. -ENOMEM. */
int node_spread_of(const struct job_spec *spec, const struct spec_role *role, bool foreign,
                   struct drarun_error *err);

/* One worker per node, and not by the template's own words; false without memory, too. */
bool node_spread_is_ours(const struct job_spec *spec, const struct spec_role *role);
/* The same of some role. */
bool node_spread_is_ours_for_any(const struct job_spec *spec);

/* Says the same to a prediction of drarun's own pods. -ENOMEM. */
int node_spread_predict(const struct job_spec *spec, const struct spec_role *role,
                        struct predict_cluster *cluster, struct drarun_error *err);

/* 1 where the template wants the workers on one node, 0 where not. -ENOMEM. */
int node_spread_is_refused(const struct job_spec *spec, const struct spec_role *role,
                           struct drarun_error *err);

/* Adds to a pod's `spec` that no other pod with NODE_SPREAD_LABEL of this job and attempt may be on
 * its node. Terms that are there stay: all required ones must hold. labels: of the job's objects
 * (object_labels). -EINVAL, kind SPEC: the template's affinity is no object. -ENOMEM. */
int node_spread_add(json_t *pod_spec, const json_t *labels, struct drarun_error *err);

#endif
