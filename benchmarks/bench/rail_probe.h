/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of several hosts with those of the same rail (lib/bench/rails.h): whose NIC is slow. All
 * ranks call it together. */
#ifndef DRARUN_BENCH_RAIL_PROBE_H
#define DRARUN_BENCH_RAIL_PROBE_H

#include <stdio.h>
#include "benchmarks/bench/meeting.h"
#include "benchmarks/bench/table.h"

/* near: of rank 0, the times of pairs on one host (lib/bench/slowest.h). Adds to *probed on
 * rank 0; nothing where there are no rails, or one alone. */
int rail_probe(const struct measure_case *m, const struct measure_memory *memory,
               const struct probe_plan *plan, const struct table_rank *ranks, const double *near,
               struct probed *probed, struct drarun_error *err);

#endif
