/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a job creates, as manifests. Pure: what is not in the spec comes as options. */
#ifndef DRARUN_JOBS_RENDER_H
#define DRARUN_JOBS_RENDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/manifests/agent_claim.h"
#include "jobs/manifests/claims.h"
#include "jobs/spec/spec.h"

/* The one place that names our images. One image holds both programs: /bin/drarun and
 * /bin/drarun-worker. */
#define RENDER_IMAGE "ghcr.io/drarun/drarun:" DRARUN_VERSION

#define RENDER_KEY_PLACEHOLDER "PLACEHOLDER: 64 hexadecimal digits, made when the job is created"

#define RENDER_AGENT_PORT 7173
#define RENDER_METRICS_PORT 7172 /* of the launcher */
#define RENDER_NO_METRICS (-1)

struct render_options {
    enum claims_api api;
    unsigned step;                   /* of the ladder: below claims_attempts() */
    uint32_t attempt;                /* of the job, from 1: the label drarun.dev/attempt; 0: none */
    const char *namespace;           /* NULL: the spec's, else "default" */
    const char *image;               /* NULL: RENDER_IMAGE */
    const struct agent_claim *agent; /* the agent comes by the claims; NULL: otherwise */
    bool image_volume;      /* the agent comes as an image volume, without an init container */
    const char *pod_groups; /* version of scheduling.k8s.io that serves them: "v1alpha2"; or NULL */
    const char *delivery;   /* DRARUN_AGENT of the launcher's pod; NULL: it finds out */
    int32_t metrics_port;   /* RENDER_NO_METRICS: none; 0: RENDER_METRICS_PORT */
    const char *key;        /* the Secret's content; NULL: RENDER_KEY_PLACEHOLDER */
    const char *secret;     /* its name, unique to the job; NULL: NAME-key */
    bool here;              /* no launcher Job: the launcher runs elsewhere */
    bool shared_policy;     /* no NetworkPolicy of its own: its creator may make none, and the
                             * namespace's is for its pods */
    uint32_t keep_s; /* for drarun alloc: the agents serve one job after another, and the launcher
                      * takes them away when it hears nothing for so long; 0: a job's */
    const char *const *avoid; /* nodes that its pods must not run on, avoid_count of them */
    size_t avoid_count;
    bool suspended;        /* the owner is, though the spec does not say so: a queue holds it */
    const char *dra_job;   /* uid of the DraJob of that name, which owns the first object; NULL */
    bool expires;          /* and which is deleted in time: the launcher Job needs no ttl */
    const char *owner_uid; /* of the first object, which owns all else; NULL: no owner references */
};

/* The versions of scheduling.k8s.io whose PodGroups we make, newest first: 1.36 has the last, 1.37
 * the two before it. v1 is what the group will have (the fields of v1beta1). */
#define POD_GROUPS_VERSIONS "v1 v1beta1 v1alpha3 v1alpha2"
/* One of those, or NULL. */
const char *pod_groups_version(const char *text);

/* An array of manifests in the order of creation: the owner (the launcher Job; `here`: the
 * ConfigMap NAME-status) first, workers last.
 * Checks limits first. Errors have kind DRARUN_ERR_SPEC. The caller owns the array. */
int render_job(const struct job_spec *spec, const struct render_options *options,
               json_t **ret_manifests, struct drarun_error *err);

/* The same in parts, so that nobody holds the manifests of all workers at once: all but the claims
 * and pods that each worker has of its own (with a claim template there are none); */
int render_shared(const struct job_spec *spec, const struct render_options *options,
                  json_t **ret_manifests, struct drarun_error *err);
/* a worker's claim, where its role wants devices; and its pod. */
int render_claim(const struct job_spec *spec, const struct render_options *options, uint32_t worker,
                 json_t **ret_claim, struct drarun_error *err);
int render_pod(const struct job_spec *spec, const struct render_options *options, uint32_t worker,
               json_t **ret_pod, struct drarun_error *err);

#endif
