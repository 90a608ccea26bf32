/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/spread.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void spread_of(double *times, size_t count, struct spread *ret_spread)
{
    double sum = 0, squares = 0;
    qsort(times, count, sizeof *times, compare);
    for (size_t i = 0; i < count; i++)
        sum += times[i];
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (times[i] - mean) * (times[i] - mean);
    *ret_spread = (struct spread){
        .least = times[0],
        .most = times[count - 1],
        .p99 = times[(count * 99 + 99) / 100 - 1],
        .variation = mean > 0 ? 100 * sqrt(squares / (double)count) / mean : 0,
    };
}
