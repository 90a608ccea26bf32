/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: nccl-tests 2.19's options with their letters and meanings, and ours. */
#ifndef DRARUN_BENCH_OPTIONS_H
#define DRARUN_BENCH_OPTIONS_H

#include <stdio.h>
#include "benchmarks/bench/measure.h"
#include "lib/base/options.h"

struct bench_options {
    const struct collective *collective;
    const char *backend; /* "mpi" */
    bool backend_given;
    struct backend_options of_backend;
    size_t min_bytes, max_bytes, step_bytes, step_factor;
    unsigned warmup, cycles; /* cycles 0: without end */
    struct measure_plan plan;
    bool types[ELEMENTS], ops[REDUCTIONS];
    int root; /* -1: all */
    unsigned unaligned;
    unsigned timeout_s;                            /* of one measurement; 0: none */
    unsigned skip;                                 /* calls that -I leaves out of its columns */
    double min_busbw;                              /* below 0: none */
    const char *json_file, *lines_file, *csv_file; /* NULL */
    bool latency;                                  /* calls one by one */
    bool pairs;                                    /* all pairs of ranks are measured, too */
    bool help;
};

/* "8", "1K", "32m", "8G", "1.5G" to bytes; -EINVAL. */
int size_parse(const char *text, size_t *ret_bytes);

int options_read(int argc, char **argv, struct bench_options *ret, struct drarun_error *err);
extern const struct option_table bench_option_table;
void options_print_help(FILE *out);

#endif
