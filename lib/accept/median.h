/* SPDX-License-Identifier: Apache-2.0 */
/* What is slow beside the others. Pure. */
#ifndef DRARUN_LIB_ACCEPT_MEDIAN_H
#define DRARUN_LIB_ACCEPT_MEDIAN_H

#include "lib/accept/accept.h"

#define MEDIAN_LEAST 5 /* measured tests, below which their median shows only what is plain */
#define MEDIAN_PLAIN 0.5

/* What a test of a wave is compared with, in GB/s. */
struct median {
    size_t measured; /* tests */
    double cut;      /* below it a test is slow; 0: none is */
    double usual;    /* the median; of two the faster one; 0: nothing to compare with */
    double part;     /* of `usual`, that counts as slow */
};

/* Slow is what is below the floor, or below the median less the part `slower`. Where fewer than
 * MEDIAN_LEAST were measured, the floor alone counts; without one, what is below half. scratch:
 * count doubles. */
void median_of(const struct accept_test *tests, size_t count, double slower, double floor,
               double *scratch, struct median *ret);

#endif
