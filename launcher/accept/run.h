/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run of `drarun accept`. */
#ifndef DRARUN_LAUNCHER_ACCEPT_RUN_H
#define DRARUN_LAUNCHER_ACCEPT_RUN_H

#include "launcher/programs/accept_order.h"
#include "launcher/cluster/client/cluster.h"

/* Prints the verdicts to stdout; returns the exit status, having said everything. */
int accept_run(struct cluster *cluster, const struct accept_order *order);

#endif
