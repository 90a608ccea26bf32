/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a job's launcher to end it. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CANCEL_H
#define DRARUN_LAUNCHER_CLUSTER_CANCEL_H

#include "launcher/cluster/client/cluster.h"

#define CANCEL_ANNOTATION "drarun.dev/cancel" /* of the owner: ends the job */

/* Of a job that has ended it is said how, and what is kept of it is deleted; where another job has
 * its name already, that one is cancelled. Else: writes the wish
 * to the launcher Job; where no launcher Job is, its launcher is not up yet, or is
 * silent (launcher_silence.h), the owner is deleted, and the job with it, pods of nodes that do not
 * answer at once. */
struct cancel; /* under way */

/* 0: done; 1: likewise, it had ended before; -errno: as err says; -ENOENT: there is no such job.
 * Called once, from the loop; the cancel is gone by then. */
typedef void (*cancel_fn)(int rc, const struct drarun_error *err, void *arg);
/* name and namespace are borrowed until fn is called. */
int cancel_start(struct cluster *cluster, const char *name, const char *namespace, cancel_fn fn,
                 void *arg, struct cancel **ret_cancel, struct drarun_error *err);
/* Asks for nothing more; what it has asked for may be done. NULL is fine. */
void cancel_free(struct cancel *cancel);

/* The same; runs the loop until it is done. */
int cancel_job(struct cluster *cluster, const char *name, const char *namespace,
               struct drarun_error *err);

/* What is kept of a job of that name that has ended is deleted, and it is said how it ended: 1. 0:
 * there is none such, or another job has its name already. Its objects may take a while to go. Runs
 * the loop. */
int cancel_ended(struct cluster *cluster, const char *name, const char *namespace,
                 struct drarun_error *err);

#endif
