/* SPDX-License-Identifier: Apache-2.0 */
/* nccl-tests' text table (2.19, src/util.cu), line by line, so that what reads theirs reads ours.
 */
#ifndef DRARUN_BENCH_TABLE_H
#define DRARUN_BENCH_TABLE_H

#include <stdio.h>
#include "benchmarks/bench/options.h"
#include "benchmarks/bench/place.h"
#include "lib/bench/result.h"

struct table_rank { /* as every rank tells it */
    struct place place;
    double copy_gbs; /* copy_rate.h */
    char host[64];
    char device[96];
    char address[16];
    int index, pid;
};

/* Is there no rank before it on its host? */
bool table_is_first_of_host(const struct table_rank *ranks, unsigned rank);

/* That rank as results name it. */
void table_rank_end(const struct table_rank *ranks, unsigned rank, struct probed_end *to);

void table_begin(FILE *out, const struct bench_options *o, const struct backend_world *world,
                 const struct table_rank *ranks);
/* Both of a size; with -I their times of single calls are sorted. */
void table_row(FILE *out, const struct bench_options *o, const struct measure_case *m,
               const struct measured *out_of_place, const struct measured *in_place);
/* One number for each size, and how the others lie; nothing without --latency. */
void table_latency(FILE *out, const struct bench_options *o, const struct result *result);
/* What hosts moved, where there are several. */
void table_traffic(FILE *out, const struct result_traffic *traffic);
/* What their devices counted as errors, and what was not looked at. */
void table_faults(FILE *out, const struct result_faults *faults);
/* The ranks that received wrong data. */
void table_wrong(FILE *out, const struct result *result);
/* Whom the exchanges of pairs name. */
void table_probed(FILE *out, const struct probed *probed);
/* wrong: elements of all rows. */
void table_end(FILE *out, const struct bench_options *o, double wrong, double busbw);

#endif
