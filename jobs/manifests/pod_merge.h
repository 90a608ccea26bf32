/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's pod: the user's template with our parts put in. Pure. */
#ifndef DRARUN_JOBS_POD_MERGE_H
#define DRARUN_JOBS_POD_MERGE_H

#include "jobs/manifests/render.h"

/* as worker: the template of an Indexed Job, for all workers of a job with one role */
#define POD_MERGE_INDEXED (-1)

/* as worker: the template of another system's pods (Ray, Kubeflow): no agent, and no launcher.
 * drarun is in the pod, the job's NCCL variables are the container's, and its command is the
 * caller's to set. */
#define POD_MERGE_FOREIGN (-2)

#define POD_MERGE_FOLDER "/.drarun"
#define POD_MERGE_AGENT_PROGRAM POD_MERGE_FOLDER "/bin/drarun-worker"
#define POD_MERGE_DRARUN POD_MERGE_FOLDER "/bin/drarun"
#define POD_MERGE_AGENT_VOLUME "drarun"
#define POD_MERGE_SHM_VOLUME "drarun-shm"
#define POD_MERGE_AGENT_CONTAINER "drarun-agent"
#define POD_MERGE_CLAIM "devices" /* the pod's name for the worker's claim */
#define POD_MERGE_CHANNEL "channel"
#define POD_MERGE_SHARED "shared-" /* with a number: of spec.devices.shared, in its order */

/* Where a worker's agent listens: on the network of a host that several workers may share, each has
 * a port of its own. */
uint16_t pod_merge_agent_port(const struct job_spec *spec, uint32_t worker);

/* The PodTemplateSpec, with labels, without a name. */
int pod_merge(const struct job_spec *spec, const struct render_options *options, int64_t worker,
              json_t **ret_template, struct drarun_error *err);

#endif
