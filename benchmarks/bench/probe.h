/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank with every other one: who is slow, when a collective tells only that somebody is. All
 * ranks call it together. */
#ifndef DRARUN_BENCH_PROBE_H
#define DRARUN_BENCH_PROBE_H

#include <stdio.h>
#include "benchmarks/bench/table.h"

struct probe_plan {
    size_t bytes;    /* each way, at most what the memory holds */
    unsigned calls;  /* of a pair; the least of them counts */
    unsigned passes; /* of all rounds: more than one only where the first names somebody, since what
                        others do on a machine does not come back at the same rank */
    unsigned rounds; /* in each of which every rank has one partner; at most ranks - 1, evenly
                        chosen */
};

/* To out, on rank 0: lines that begin with "#". ranks: as all told. */
int probe_pairs(const struct measure_case *m, const struct measure_memory *memory,
                const struct probe_plan *plan, const struct table_rank *ranks, FILE *out,
                struct drarun_error *err);

/* Who is rank's partner in that round, of `ranks` (odd: one pauses) that all meet once in
 * probe_rounds(ranks) rounds; rank itself: nobody. */
unsigned probe_rounds(unsigned ranks);
unsigned probe_partner(unsigned rank, unsigned round, unsigned ranks);

#endif
