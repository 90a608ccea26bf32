/* SPDX-License-Identifier: Apache-2.0 */
/* The Kubernetes objects that a job creates, as manifests. Does not contact a cluster. */
#ifndef DRARUN_RENDER_H
#define DRARUN_RENDER_H

#include "drarun/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line without a newline, borrowed for the call. */
typedef void (*drarun_note_fn)(const char *line, void *arg);

struct drarun_render_options {
    size_t size;            /* of this struct */
    const char *format;     /* "yaml", one document each; "json", one List. NULL: yaml */
    const char *api;        /* version of resource.k8s.io: "v1", "v1beta2", "v1beta1". NULL: v1 */
    const char *claims;     /* "direct", "template". NULL: the spec's */
    const char *namespace_; /* NULL: the spec's, else "default" */
    const char *image; /* image of agent and launcher. NULL: $DRARUN_IMAGE, else this version's */
    const char *agent_claim; /* "DRIVER=AGENT": the claim delivers the agent. NULL: it does not */
    const char *pod_groups; /* version of scheduling.k8s.io for gangScheduling. NULL: no PodGroup */
    const char *owner_uid;  /* UID of the first object, for owner references. NULL: none */
    unsigned step;          /* fallback step of `align: preferred`, from 1; 0: 1 */
    unsigned char image_volume; /* 1: mount the agent's image instead of copying from it */
    unsigned char here;         /* 1: no launcher Job; the launcher runs elsewhere */
    const char
        *as; /* "raycluster", "rayjob", "trainjob": for another system's controller; drarun then
                only runs as `drarun env` in the pods. NULL: as drarun creates the job */
    const char *head;    /* head of a RayCluster or RayJob: "plain", without devices, or "worker",
                            the first worker. NULL: plain */
    drarun_note_fn note; /* with as: called with "NAME: spec.path: message" for each field that the
                            other system does not support. Also called for a profile of the site's
                            file, since drarun in the cluster does not know it. NULL: no notes */
    void *note_arg;
    const char *replicas; /* autoscaler limits "MIN:MAX" of a RayCluster's or RayJob's worker group.
                             NULL: no autoscaler */
};
DRARUN_DEFINE_INIT(drarun_render_options)

/* *ret_text: the manifests, starting with the owner of the others. Kind DRARUN_ERR_USAGE: options
 * that are invalid or do not fit the job; DRARUN_ERR_SPEC: the job exceeds a limit, or its profile
 * is unknown. */
DRARUN_API int drarun_render(const struct drarun_spec *spec,
                             const struct drarun_render_options *options, char **ret_text,
                             struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
