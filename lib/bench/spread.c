/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/spread.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/order.h"

static double percentile(const double *sorted, size_t count, size_t percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}

void spread_of(double *times, size_t count, struct spread *ret_spread)
{
    double sum = 0, squares = 0;
    qsort(times, count, sizeof *times, order_doubles);
    for (size_t i = 0; i < count; i++)
        sum += times[i];
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (times[i] - mean) * (times[i] - mean);
    *ret_spread = (struct spread){
        .least = times[0],
        .most = times[count - 1],
        .mean = mean,
        .deviation = sqrt(squares / (double)count),
        .p50 = times[count / 2],
        .p95 = percentile(times, count, 95),
        .p99 = percentile(times, count, 99),
    };
}

double spread_variation(const struct spread *spread)
{
    return spread->mean > 0 ? 100 * spread->deviation / spread->mean : 0;
}
