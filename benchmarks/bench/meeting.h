/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that exchange data in rounds, in each of which everybody has one partner or pauses. All
 * ranks call it together. */
#ifndef DRARUN_BENCH_MEETING_H
#define DRARUN_BENCH_MEETING_H

#include "benchmarks/bench/measure.h"

struct probe_plan {
    size_t bytes;    /* each way, at most what the memory holds */
    unsigned calls;  /* of a pair; the least of them counts */
    unsigned passes; /* of all rounds: more than one only where the first suspects somebody, since
                        what others do on a machine does not come back at the same rank */
    unsigned rounds; /* at most so many, evenly chosen */
};

struct meeting {
    unsigned rounds;
    unsigned (*partner)(const void *arg, unsigned rank, unsigned round); /* itself: it pauses */
    const void *arg;
    const char *what; /* for who watches */
    /* On rank 0, after each pass: times are ranks times ranks, symmetric, the least of all passes,
     * 0 where nobody met; how many are suspected says whether there is another pass. */
    int (*judge)(void *to, const double *times, size_t *ret_suspects, struct drarun_error *err);
    void *to;
};

int meeting_hold(const struct meeting *meeting, const struct measure_case *m,
                 const struct measure_memory *memory, const struct probe_plan *plan,
                 struct drarun_error *err);

#endif
