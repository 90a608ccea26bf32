/* SPDX-License-Identifier: Apache-2.0 */
/* drarun exec: a command beside a rank, with that rank's environment, folder and CPUs. The pod's
 * agent program finds them (worker/modes/beside.h); we only connect. */
#ifndef DRARUN_LAUNCHER_CLUSTER_EXEC_H
#define DRARUN_LAUNCHER_CLUSTER_EXEC_H

#include "launcher/cluster/client/cluster.h"
#include "launcher/programs/cluster_api.h"

/* The command's exit status, or ours, having said why. */
int exec_beside(struct cluster *cluster, const struct cluster_exec *options);

#endif
