/* SPDX-License-Identifier: Apache-2.0 */
/* A job for another system's controller (docs/design/030-other-systems.md): the same claims, mounts
 * and environment, without our launcher and agents. What the other system has no place for is told,
 * and what it would do otherwise than the user means is refused. Pure. */
#ifndef DRARUN_JOBS_RENDER_AS_RENDER_AS_H
#define DRARUN_JOBS_RENDER_AS_RENDER_AS_H

#include "jobs/manifests/render.h"
#include "lib/base/strlist.h"

enum render_head {                        /* of a RayCluster */
                   RENDER_HEAD_PLAIN = 1, /* a pod without devices, beside the workers */
                   RENDER_HEAD_WORKER,    /* one of the workers */
};

struct render_foreign {
    struct render_options options; /* api, step, namespace, image and image_volume count */
    enum render_head head;         /* 0: plain */
    bool scales;                   /* of Ray: an autoscaler keeps the group of workers between: */
    uint32_t replicas_min, replicas_max;
};

/* An array of manifests in the order of creation, the caller's; the system's own object comes last.
 * told gets an entry "NAME: spec.path: reason" for each field of the document that has no place.
 * Kind DRARUN_ERR_SPEC, or DRARUN_ERR_USAGE for a step that the job has not. */
typedef int (*render_foreign_fn)(const struct job_spec *spec, const struct render_foreign *how,
                                 struct strlist *told, json_t **ret_manifests,
                                 struct drarun_error *err);

int render_raycluster(const struct job_spec *spec, const struct render_foreign *how,
                      struct strlist *told, json_t **ret_manifests, struct drarun_error *err);
/* A cluster of its own for the job's command, which goes with it. */
int render_rayjob(const struct job_spec *spec, const struct render_foreign *how,
                  struct strlist *told, json_t **ret_manifests, struct drarun_error *err);
/* With the TrainingRuntime of the same name, which has its pods. */
int render_trainjob(const struct job_spec *spec, const struct render_foreign *how,
                    struct strlist *told, json_t **ret_manifests, struct drarun_error *err);

#endif
