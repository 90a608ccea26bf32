/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the cluster before a job's first object is created, and the namespace's account
 * for it. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_PREPARE_H
#define DRARUN_LAUNCHER_CLUSTER_PREPARE_H

#include "jobs/manifests/render.h"
#include "launcher/cluster/client/cluster.h"

/* render: with its namespace; the rest of what the cluster's answers decide is set. *spec: replaced
 * by *named, which the caller frees, where it leaves its profile open. Runs the loop. */
int prepare_job(struct cluster *cluster, const struct job_spec **spec, struct job_spec *named,
                struct render_options *render, struct drarun_error *err);

/* The same beside other work of the loop. All that is given stays until prepare_end or
 * prepare_drop. */
struct preparation;
int prepare_begin(struct cluster *cluster, const struct job_spec *spec, struct job_spec *named,
                  struct render_options *render, struct preparation **ret_preparation,
                  struct drarun_error *err);
/* For each turn of the loop. True: it is over. */
bool prepare_go_on(struct preparation *preparation);
/* The cluster has given its answers, which the next job may ask for. Until then they are in the
 * struct cluster, which is one job's. */
bool prepare_has_answers(const struct preparation *preparation);
/* After that. *ret_spec: what is to be created. */
int prepare_end(struct preparation *preparation_take, const struct job_spec **ret_spec,
                struct drarun_error *err);
/* Gives up what is under way. NULL is fine. */
void prepare_drop(struct preparation *preparation);

#endif
