/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench` as a job of a cluster: the spec that the words make, run as `drarun run` would,
 * and the verdict on what it printed. */
#ifndef DRARUN_LAUNCHER_BENCH_ON_CLUSTER_H
#define DRARUN_LAUNCHER_BENCH_ON_CLUSTER_H

#include "launcher/bench/choice.h"

/* Devices, or anything else that only a cluster has, was asked for. */
bool bench_on_cluster_wanted(const struct bench_choice *choice);

/* In drarun-cluster. ret_figures: what it reached, untouched without a verdict; NULL: not wanted.
 * Returns the exit status, having said everything. */
int bench_on_cluster(const struct bench_choice *choice, struct verdict_figures *ret_figures);

#endif
