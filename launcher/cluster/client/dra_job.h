/* SPDX-License-Identifier: Apache-2.0 */
/* A DraJob of which nothing may be made yet, for the verbs on a job: it was applied, and is
 * suspended, refused, or waits for a controller; or another controller manages it. Those that ask
 * the cluster run the loop. */
#ifndef DRARUN_LAUNCHER_CLUSTER_DRA_JOB_H
#define DRARUN_LAUNCHER_CLUSTER_DRA_JOB_H

#include "launcher/cluster/client/cluster.h"
#include "lib/base/buf.h"

/* -ENOENT, kind DRARUN_ERR_USAGE: there is no such job, nor where DraJobs are no objects. */
int dra_job_get(struct cluster *cluster, const char *name, const char *namespace,
                json_t **ret_object, struct drarun_error *err);
/* Those of the namespace (NULL: of all), an array; empty where there are none, or they may not be
 * read. NULL without memory. */
json_t *dra_job_list(struct cluster *cluster, const char *namespace, const char *selector);

enum dra_job_state {
    DRA_JOB_AWAITED = 1, /* nothing is made of it yet */
    DRA_JOB_MADE,        /* there is something to follow: its launcher Job */
    DRA_JOB_ENDED,       /* *ret_status is its exit status; its words were logged */
};
/* What is to be done with an object as it is now: of enum dra_job_state, or an error where it is no
 * use to wait. Kind DRARUN_ERR_SPEC: its spec was refused; -ENOENT: object is NULL, since it was
 * deleted. */
int dra_job_judge(const json_t *object, const char *name, int *ret_status,
                  struct drarun_error *err);
/* Why there is nothing to follow, and what it waits for. */
void dra_job_add_words(const json_t *object, const char *name, struct buf *out);

#endif
