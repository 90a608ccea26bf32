/* SPDX-License-Identifier: Apache-2.0 */
/* A role of a job before it runs: what each worker would claim and, where slices are given, which
 * devices it would get and the plan that follows from them. Pure. */
#ifndef DRARUN_JOBS_PREVIEW_H
#define DRARUN_JOBS_PREVIEW_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/derive/plan.h"
#include "jobs/predict/absent_nodes.h"
#include "lib/dra/predict.h"
#include "jobs/spec/spec.h"

struct preview;

struct preview_input {
    const struct job_spec *spec;
    const struct spec_role *role;         /* of the spec: a preview is of its workers */
    const struct preview *const *earlier; /* of roles that have their nodes and devices already,
                                           * earlier_count of them */
    uint32_t earlier_count;
    const struct slices *slices; /* NULL: no prediction for a job with claims */
    const json_t *classes;       /* array of DeviceClasses, or NULL */
    bool classes_known;          /* there are no others */
    const json_t *nodes;         /* array of Nodes; NULL or empty: devices alone decide, and for a
                                  * job without claims there is no prediction */
    bool nodes_known;            /* there are no others */
    const json_t *node_labels;   /* node name -> labels, or NULL */
    const json_t *claims;        /* array of ResourceClaims that are there already, or NULL */
    const json_t *taint_rules;   /* array of DeviceTaintRules, or NULL */
    const json_t *quotas;        /* array of ResourceQuotas, or NULL */
    const json_t *limit_ranges;  /* array of LimitRanges, or NULL */
    bool rules_known;            /* there are no other quotas and limit ranges */
    unsigned minor;              /* of Kubernetes, as in struct predict_cluster */
    struct absent_nodes absent;  /* what autoscalers say */
    const struct profiles *profiles;
    const char *profile_fact; /* how the spec's was recognised; NULL: the user's */
    const char *profile_ask;  /* why none is known (job_profile_ask); NULL or "": no matter */
    const char *nccl_version; /* NULL: the spec's, else the newest that is known */
};

struct preview {
    const struct spec_role *role; /* of the input */
    json_t *claim; /* the spec of each worker's ResourceClaim (v1); NULL: none is claimed */
    unsigned step,
        steps; /* of the ladder (jobs/manifests/claims.h) that the claim is; step from 0 */
    uint32_t placed_first; /* workers that step 0 places, where it does not place all */
    const char *advice;    /* a better spec for the same devices; NULL */
    bool predicted;        /* prediction is filled */
    struct prediction
        prediction; /* its shortage may be the namespace's (jobs/manifests/namespace_fit.h), which
                     * is there with its notes where nothing else is predicted, too */
    char *absent;   /* absent_nodes_words, where the nodes that are there have no room; NULL */
    json_t *labels; /* as the input's, with the node that the pods name: prediction borrows them */
    bool planned;   /* it has claims, every worker has a node, and plan is filled */
    struct plan plan;
    json_t *claims;   /* as they would be allocated: the plan borrows from them */
    json_t *extended; /* claims of the scheduler for their extended resources, as allocated */
    struct plan_worker_input *workers;
    uint32_t *rank_order; /* of the plan; NULL: by number */
    struct strlist pods;
};

/* The first step of the ladder that places all workers, or else the most; where none places any,
 * the last, or the first where a class is published nowhere. Everything of the input must
 * outlive the preview. A job without room is no error: see prediction.shortage. */
int preview_build(const struct preview_input *input, struct preview *ret_preview,
                  struct drarun_error *err);
void preview_done(struct preview *preview);

#endif
