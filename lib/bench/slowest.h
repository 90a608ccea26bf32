/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks are slower than the rest, from the times of all pairs: a slow rank is slow with every
 * partner, a slow path with one alone. Pure. */
#ifndef DRARUN_LIB_BENCH_SLOWEST_H
#define DRARUN_LIB_BENCH_SLOWEST_H

#include <stddef.h>

#define SLOWEST_EXCESS 0.05 /* less than 5 % slower is never named; of fewer than 8 ranks, 20 % */

struct slowest_rank {
    unsigned rank;
    double seconds, usual; /* its pairs in quiet moments (the lower quartile), and the median of
                              all ranks' */
};

struct slowest_pair {
    unsigned a, b;
    double seconds, usual; /* of them, and the median of all pairs of other ranks */
};

struct slowest {
    struct slowest_rank *ranks; /* the slowest first */
    size_t rank_count;
    size_t suspects; /* ranks that are slower by as much, named or not: more measurements tell */
    struct slowest_pair *pairs; /* of ranks that are not named, the slowest first */
    size_t pair_count;
    size_t pairs_seen;
};

/* times: ranks times ranks, seconds that row and column took together, symmetric; not above 0: not
 * measured. Below three ranks, or where a rank has no pair but with one other, nobody is named. 0,
 * or -ENOMEM. */
int slowest_find(const double *times, size_t ranks, struct slowest *ret_slowest);
void slowest_done(struct slowest *s);

#endif
