/* SPDX-License-Identifier: Apache-2.0 */
/* The standard output of a measurement's ranks, as it comes: all of it is kept for who reads the
 * results in it, and all but the marked lines (lib/bench/marked.h) is shown. Loop thread only. */
#ifndef DRARUN_LAUNCHER_BENCH_OUTPUT_H
#define DRARUN_LAUNCHER_BENCH_OUTPUT_H

#include "launcher/bench/line_hide.h"
#include "launcher/streams/sink.h"
#include "lib/base/buf.h"

struct bench_output {
    struct buf text; /* for results_read_text */
    struct line_hide hide;
    struct buf *shown; /* of the present call */
};

/* The caller calls bench_output_done. */
void bench_output_init(struct bench_output *output);
void bench_output_done(struct bench_output *output);
/* What fills it; borrows it. */
struct sink_reader bench_output_reader(struct bench_output *output);

#endif
