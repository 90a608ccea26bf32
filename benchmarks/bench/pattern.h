/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a check: what each rank puts in, and what must come out. A value is a function of the
 * element's place, its rank and the round alone, so that each rank knows what all others have; the
 * values are such that every order of a reduction gives the same result without rounding. Pure. */
#ifndef DRARUN_BENCH_PATTERN_H
#define DRARUN_BENCH_PATTERN_H

#include "benchmarks/bench/element.h"

struct pattern {
    enum element type;
    enum reduction op; /* what its values are made for */
    unsigned ranks;    /* that take part in the reduction; 1: data that is only moved */
    unsigned round;
};

/* Elements after which data of any rank, and what they reduce to, repeat. */
size_t pattern_period(const struct pattern *p);

/* `count` elements from place `first` on of the data of `rank`. */
void pattern_fill(const struct pattern *p, unsigned rank, size_t first, size_t count, void *to);
/* ... and of the reduction over all ranks. AVG of whole numbers is cut towards zero. */
void pattern_reduced(const struct pattern *p, size_t first, size_t count, void *to);

/* How many elements differ. tolerance: relative, 0 for equal bits; for AVG, which may multiply by a
 * rounded 1/ranks. */
size_t pattern_wrong(enum element type, double tolerance, const void *got, const void *want,
                     size_t count);
double pattern_tolerance(const struct pattern *p);
/* MULSUM's factor of this rank. */
double pattern_scalar(unsigned rank);

#endif
