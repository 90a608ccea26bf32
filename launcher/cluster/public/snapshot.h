/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the cluster as they are now, for verbs that else read them from files. */
#ifndef DRARUN_LAUNCHER_CLUSTER_SNAPSHOT_H
#define DRARUN_LAUNCHER_CLUSTER_SNAPSHOT_H

#include "launcher/api/plan.h"
#include "launcher/cluster/client/cluster.h"
#include "launcher/files/cluster_files.h"

/* Adds the objects of these kinds, of all namespaces, but quotas and limit ranges, which are those
 * of the job's namespace. The first kind must be readable; what else may not be read, or is not
 * served, is said and left out. Runs the loop. */
int snapshot_read(struct cluster *cluster, const char *namespace, const struct cluster_kind *kinds,
                  size_t count, struct drarun_error *err);

/* What a plan is made from, after cluster_discover. */
int snapshot_plan(struct cluster *cluster, const char *namespace, struct plan_objects *objects,
                  struct drarun_error *err);

#endif
