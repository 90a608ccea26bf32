/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a rank copies its own memory while all ranks do: ranks that share a host's memory cannot
 * move data faster. */
#ifndef DRARUN_BENCH_COPY_RATE_H
#define DRARUN_BENCH_COPY_RATE_H

#include "benchmarks/bench/measure.h"

/* GB/s of bytes copied: the fastest copy of some 10 ms, of pieces as large as the largest message
 * and as the smallest, which caches may hold. All ranks call it together. 0: the messages are too
 * small for it to mean anything. */
int copy_rate(const struct backend *backend, const struct measure_memory *memory, size_t smallest,
              double *ret_gbs, struct drarun_error *err);

#endif
