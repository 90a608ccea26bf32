/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of the cluster as text or JSON: list, status, describe. Each returns the exit status. */
#ifndef DRARUN_LAUNCHER_CLUSTER_SHOW_H
#define DRARUN_LAUNCHER_CLUSTER_SHOW_H

#include "launcher/cluster/client/cluster.h"
#include "launcher/programs/cluster_api.h"

/* Adds the status documents of the jobs that a list would show to the array docs: 0 or -errno. */
int show_read_docs(struct cluster *cluster, const struct cluster_job *job, json_t *docs,
                   struct drarun_error *err);

int show_list(struct cluster *cluster, const struct cluster_job *job);
int show_status(struct cluster *cluster, const struct cluster_job *job);
/* Status, plan of what is created, and the Events about the job. */
int show_describe(struct cluster *cluster, const struct cluster_job *job);

#endif
