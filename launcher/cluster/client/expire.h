/* SPDX-License-Identifier: Apache-2.0 */
/* spec.ttlSecondsAfterFinished of a job without a launcher Job: its document stays that long, and
 * the next command that sees it deletes it, since no controller does. Runs the loop. */
#ifndef DRARUN_LAUNCHER_CLUSTER_EXPIRE_H
#define DRARUN_LAUNCHER_CLUSTER_EXPIRE_H

#include "launcher/cluster/client/cluster.h"

#define EXPIRE_ANNOTATION "drarun.dev/expires" /* of the document */

/* Of a job that has ended, whose workers are being deleted: takes its Secret and its Lease away,
 * and dates its document. */
int expire_keep(struct cluster *cluster, const char *job, const char *namespace, const char *secret,
                int64_t seconds, struct drarun_error *err);
/* Deletes the documents whose time is over by the API server's clock, since that of this machine
 * may be wrong; returns how many. Best effort: who may not is told nothing. */
size_t expire_reap(struct cluster *cluster, const char *namespace);

#endif
