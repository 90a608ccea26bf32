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

/* Whether Pod Security takes the pods of a job whose Indexed Job makes them, one of each role:
 * refused are they only when the job may run, which a queue can put off for hours. What else the
 * server says against such a pod now (quotas, rights) is no answer. Zeroed but for what it borrows,
 * at an address that stays. */
struct pod_trial {
    struct cluster *cluster;
    const struct job_spec *spec;
    const struct render_options *options;
    uint32_t next;           /* the role that is tried then */
    struct kube_call *call;  /* NULL: none is under way */
    struct drarun_error err; /* EACCES: they are refused, with what mends it */
};
/* For each turn of the loop. True: it is over. */
bool pod_trial_go_on(struct pod_trial *trial);
/* Gives it up. */
void pod_trial_drop(struct pod_trial *trial);

#endif
