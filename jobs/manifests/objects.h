/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a job beside its pods: each function gives one manifest, owned by the caller, or
 * NULL when out of memory. Pure. The Role, its binding and its account are a namespace's:
 * install.h. */
#ifndef DRARUN_JOBS_OBJECTS_H
#define DRARUN_JOBS_OBJECTS_H

#include "jobs/manifests/render.h"
#include "lib/base/sha256.h"

/* Every object names its namespace, since a RoleBinding must name that of its account. */
const char *object_namespace(const struct job_spec *spec, const struct render_options *options);

/* {apiVersion, kind, metadata}: the job's labels and annotations, the owner unless the object is
 * the owner itself. name_take: as json_sprintf makes it; may be NULL. */
json_t *object_new(const struct job_spec *spec, const struct render_options *options,
                   const char *api_version, const char *kind, json_t *name_take, bool owned);

/* The labels of our own, then the user's: for objects and for pods. */
json_t *object_labels(const struct job_spec *spec, const struct render_options *options);

/* Kueue's LocalQueue, which admits the Job by taking spec.suspend away; borrowed from the Job.
 * NULL: it is no queue's. The label may be the spec's, the user's, or a default of the cluster. */
#define OBJECT_QUEUE_LABEL "kueue.x-k8s.io/queue-name"
const char *object_queue(const json_t *job);
/* Whether spec.suspend of the Job is true; NULL: false. */
bool object_is_suspended(const json_t *job);

/* "sha256:" and digits, over all that the document says but spec.suspend, which may change, and
 * spec.workers; whatever the order of its keys. The launcher's Job has it as OBJECT_DOCUMENT, and
 * the number of all workers as OBJECT_DOCUMENT_WORKERS: an earlier release knows the former alone,
 * and neither makes nor reads the latter. Nobody can change them there, and the Job's launcher
 * obeys no other document. -ENOMEM. */
#define OBJECT_DOCUMENT "DRARUN_DOCUMENT"
#define OBJECT_DOCUMENT_WORKERS "DRARUN_DOCUMENT_WORKERS"
#define OBJECT_DIGEST_SIZE (7 + SHA256_TEXT_SIZE)
int object_document_digest(const json_t *document, char ret_text[OBJECT_DIGEST_SIZE],
                           struct drarun_error *err);

/* The launcher's Job, and its container in the pod, beside which admission may put others. */
#define OBJECT_LAUNCHER_CONTAINER "launcher"
json_t *object_launcher(const struct job_spec *spec, const struct render_options *options);
/* The securityContext of a container of ours: Pod Security's level "restricted" takes it. user: its
 * user id, not root's; 0: that of the pod or of the image (OBJECT_USER), or the one that a platform
 * assigns, as OpenShift does, which refuses others. */
#define OBJECT_USER 65532 /* of our image (scripts/lib/oci_image.py) */
json_t *object_security(json_int_t user);
/* Of a pod that no autoscaler may move to save a node. */
json_t *object_stay_annotations(void);
/* The variable that gives a container the job's key. */
json_t *object_key_variable(const struct job_spec *spec, const struct render_options *options);
json_t *object_secret(const struct job_spec *spec, const struct render_options *options);
/* NAME-w: the pods of all attempts, for a scheduler that places all of them or none. */
json_t *object_pod_group(const struct job_spec *spec, const struct render_options *options);
bool object_has_pod_group(const struct job_spec *spec, const struct render_options *options);
/* NAME-status: the document as the user wrote it under job.json, for the launcher, which adds the
 * status. */
json_t *object_status(const struct job_spec *spec, const struct render_options *options);

#endif
