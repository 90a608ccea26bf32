/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the API server whether it would take a job's objects, and makes none. */
#ifndef DRARUN_LAUNCHER_CLUSTER_DRY_RUN_H
#define DRARUN_LAUNCHER_CLUSTER_DRY_RUN_H

#include "jobs/manifests/render.h"
#include "launcher/cluster/client/cluster.h"
#include "lib/base/buf.h"

/* The objects that all workers share, and the claim and the pod of the first; the others are like
 * these. Appends a line for each: "v1 Pod train-w-0: ok". What is refused (by the schema,
 * admission, a quota, rights) says why, and the others are tried all the same; what the server
 * warns of has a line of its own, once. -errno: the first refusal. After cluster_discover; runs the
 * loop. */
int dry_run_job(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                const char *image, struct buf *out, struct drarun_error *err);

/* Whether Pod Security takes the pods of a job whose Indexed Job makes them: refused are they only
 * when the job may run, which a queue can put off for hours. What else the server says against
 * such a pod now (quotas, rights) is no answer. -EACCES: no, with what mends it. Runs the loop. */
int dry_run_indexed(struct cluster *cluster, const struct job_spec *spec,
                    const struct render_options *options, struct drarun_error *err);

#endif
