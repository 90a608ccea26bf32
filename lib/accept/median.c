/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/accept/median.h"

#include <stdlib.h>

#include "lib/base/order.h"

void median_of(const struct accept_test *tests, size_t count, double slower, double floor,
               double *scratch, struct median *ret)
{
    size_t measured = 0;
    for (size_t i = 0; i < count; i++)
        if (tests[i].answer.outcome == ACCEPT_MEASURED)
            scratch[measured++] = tests[i].answer.busbw;
    *ret = (struct median){.measured = measured, .cut = floor, .part = slower};
    bool few = measured < MEDIAN_LEAST;
    if (few && (measured < 2 || floor > 0))
        return;
    qsort(scratch, measured, sizeof *scratch, order_doubles);
    ret->usual =
        measured == 2 ? scratch[1] : (scratch[measured / 2] + scratch[(measured - 1) / 2]) / 2;
    if (few && slower < MEDIAN_PLAIN)
        ret->part = MEDIAN_PLAIN;
    double cut = ret->usual * (1 - ret->part);
    ret->cut = cut > floor ? cut : floor;
}
