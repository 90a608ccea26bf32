/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict below a table that was just printed: lines that begin with "#", so that a program
 * that reads the table can go on. */
#ifndef DRARUN_LAUNCHER_BENCH_VERDICT_LINES_H
#define DRARUN_LAUNCHER_BENCH_VERDICT_LINES_H

#include "launcher/bench/asked.h"
#include "lib/bench/runs.h"

struct verdict_figures { /* GB/s and per cent of the limit; below 0: none */
    double best, average, percent;
};

/* Of these runs, to stdout. ret_figures: of the last one; NULL: not wanted. Returns the exit
 * status, having said everything. */
int verdict_lines(const struct runs *runs, const struct bench_asked *asked,
                  struct verdict_figures *ret_figures);
/* The same where the runs cannot be read. */
int verdict_none(const struct drarun_error *why);

#endif
