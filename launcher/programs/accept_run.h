/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run of `drarun accept`: of launcher/accept, or of launcher/cluster/without_bench.c in a
 * build that lacks the benchmark. */
#ifndef DRARUN_LAUNCHER_ACCEPT_RUN_H
#define DRARUN_LAUNCHER_ACCEPT_RUN_H

#include "launcher/programs/cluster_api.h"

struct cluster;

/* Prints the verdicts to stdout; returns the exit status, having said everything. run: for the job
 * of each test. */
int accept_run(struct cluster *cluster, const struct accept_order *asked, cluster_run_fn run);

#endif
