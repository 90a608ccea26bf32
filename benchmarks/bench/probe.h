/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank with every other one, and then by rails: who is slow, when a collective tells only
 * that somebody is. All ranks call it together. */
#ifndef DRARUN_BENCH_PROBE_H
#define DRARUN_BENCH_PROBE_H

#include <stdio.h>
#include "benchmarks/bench/meeting.h"
#include "benchmarks/bench/table.h"

/* ret_probed: of rank 0. ranks: as all told. */
int probe_pairs(const struct measure_case *m, const struct measure_memory *memory,
                const struct probe_plan *plan, const struct table_rank *ranks,
                struct probed *ret_probed, struct drarun_error *err);

#endif
