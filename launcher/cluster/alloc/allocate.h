/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun alloc FILE`: a job's claims and pods, kept for a shell (docs/design/032-allocation.md).
 */
#ifndef DRARUN_LAUNCHER_CLUSTER_ALLOCATE_H
#define DRARUN_LAUNCHER_CLUSTER_ALLOCATE_H

#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"
#include "launcher/programs/cluster_api.h"

/* From the creation of its objects to their end; the exit status is the shell's, or says why there
 * was none. What is to be said was said. */
int allocate(struct cluster *cluster, const struct cluster_alloc *options, struct job_spec *spec);

#endif
