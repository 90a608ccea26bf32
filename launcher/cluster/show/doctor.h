/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a cluster: what it serves of Dynamic Resource Allocation, who publishes devices, what
 * the caller may do, and how the node plugin is. Only reads, and reviews of the caller's rights. */
#ifndef DRARUN_LAUNCHER_CLUSTER_DOCTOR_H
#define DRARUN_LAUNCHER_CLUSTER_DOCTOR_H

#include "launcher/cluster/client/cluster.h"
#include "launcher/doctor/findings.h"

/* A cluster that cannot be reached is a finding. -ENOMEM. */
int doctor_look(struct cluster *cluster, struct findings *findings, struct drarun_error *err);

#endif
