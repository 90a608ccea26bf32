/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a job's launcher to end it. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CANCEL_H
#define DRARUN_LAUNCHER_CLUSTER_CANCEL_H

#include "launcher/cluster/client/cluster.h"

#define CANCEL_ANNOTATION "drarun.dev/cancel" /* of the owner: ends the job */

/* Of a job that has ended it is said how, and what is kept of it is deleted. Else: writes the wish
 * to the launcher Job; where no launcher Job is, its launcher is not up yet, or is
 * silent (launcher_silence.h), the owner is deleted, and the job with it, pods of nodes that do not
 * answer at once. -ENOENT: there is no such job. */
int cancel_job(struct cluster *cluster, const char *name, const char *namespace,
               struct drarun_error *err);

/* What is kept of a job of that name that has ended is deleted, and it is said how it ended: 1. 0:
 * there is none such. Its objects may take a while to go. */
int cancel_ended(struct cluster *cluster, const char *name, const char *namespace,
                 struct drarun_error *err);

#endif
