/* SPDX-License-Identifier: Apache-2.0 */
/* How the times of single calls lie, as nccl-tests' -I sums them up (src/util.cu,
 * computeIterStats). Pure. */
#ifndef DRARUN_BENCH_SPREAD_H
#define DRARUN_BENCH_SPREAD_H

#include <stddef.h>

struct spread {
    double least, most, p99; /* p99 by nearest rank: below 100 times the most */
    double variation;        /* standard deviation over mean, per cent */
};

/* times: sorted afterwards; count: at least 1. */
void spread_of(double *times, size_t count, struct spread *ret_spread);

#endif
