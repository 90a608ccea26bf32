/* SPDX-License-Identifier: Apache-2.0 */
/* What is slow beside the others. Pure. */
#ifndef DRARUN_LIB_ACCEPT_MEDIAN_H
#define DRARUN_LIB_ACCEPT_MEDIAN_H

#include "lib/accept/accept.h"

#define MEDIAN_LEAST 5 /* measured tests, below which their median says nothing */

/* GB/s below which a test of the wave is slow: the larger of the floor and of the median less the
 * part `slower`. ret_median: 0 when there are too few. scratch: count doubles. */
double median_cut(const struct accept_test *tests, size_t count, double slower, double floor,
                  double *scratch, double *ret_median);

#endif
