/* SPDX-License-Identifier: Apache-2.0 */
/* How the times of single calls lie, as nccl-tests' -I sums them up (src/util.cu,
 * computeIterStats). Pure. */
#ifndef DRARUN_LIB_BENCH_SPREAD_H
#define DRARUN_LIB_BENCH_SPREAD_H

#include <stddef.h>

struct spread {
    double least, most, mean, deviation;
    double p50, p95, p99; /* p95, p99 by nearest rank: the most where there are few */
};

/* times: sorted afterwards; count: at least 1. */
void spread_of(double *times, size_t count, struct spread *ret_spread);
/* Standard deviation over mean, per cent. */
double spread_variation(const struct spread *spread);

#endif
