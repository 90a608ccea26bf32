/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the workers of a suspended job go on: pods behind our own gate drarun.dev/suspended, and the
 * worker Job unless it is a queue's (object_queue). Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_RESUME_H
#define DRARUN_LAUNCHER_CLUSTER_RESUME_H

#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"

/* worker_job: NULL when there is none. Runs the loop until all is answered. What somebody else has
 * changed at the same time stays for the next call. */
int resume_workers(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                   const struct pod_state *workers, const json_t *worker_job,
                   struct drarun_error *err);

#endif
