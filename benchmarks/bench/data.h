/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a check where the backend has it: made, and looked at, without a copy of all of it in
 * the program's memory, which eight ranks of a node with buffers of GiBs do not have. */
#ifndef DRARUN_BENCH_DATA_H
#define DRARUN_BENCH_DATA_H

#include "benchmarks/bench/backend.h"
#include "benchmarks/bench/pattern.h"

#define DATA_STAGING_BYTES ((size_t)8 << 20)

/* Where data is made. staging: DATA_STAGING_BYTES of the program's memory, which every call here
 * overwrites. Both are borrowed. */
struct data {
    const struct backend *backend;
    char *staging;
};

/* `to`, `got` and `want` are of the backend's memory, and are as the transfers before left them. */
void data_set(const struct data *d, int byte, size_t bytes, void *to);
/* As pattern_fill and pattern_reduced. */
void data_fill(const struct data *d, const struct pattern *p, unsigned rank, size_t first,
               size_t count, void *to);
void data_reduced(const struct data *d, const struct pattern *p, size_t first, size_t count,
                  void *to);
/* How many of `count` elements differ by more than the pattern's tolerance. */
size_t data_wrong(const struct data *d, const struct pattern *p, const void *got, const void *want,
                  size_t count);

#endif
