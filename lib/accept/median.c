/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/accept/median.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_cut(const struct accept_test *tests, size_t count, double slower, double floor,
                  double *scratch, double *ret_median)
{
    size_t measured = 0;
    for (size_t i = 0; i < count; i++)
        if (tests[i].answer.outcome == ACCEPT_MEASURED)
            scratch[measured++] = tests[i].answer.busbw;
    *ret_median = 0;
    if (measured < MEDIAN_LEAST)
        return floor;
    qsort(scratch, measured, sizeof *scratch, by_value);
    *ret_median = (scratch[measured / 2] + scratch[(measured - 1) / 2]) / 2;
    double cut = *ret_median * (1 - slower);
    return cut > floor ? cut : floor;
}
