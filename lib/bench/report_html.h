/* SPDX-License-Identifier: Apache-2.0 */
/* A page about some runs: verdicts, pictures and all rows, in one file that loads nothing else, for
 * light and dark. Results of a stand-in are refused, and data that was wrong has no figure. Pure.
 */
#ifndef DRARUN_LIB_BENCH_REPORT_HTML_H
#define DRARUN_LIB_BENCH_REPORT_HTML_H

#include "lib/bench/plot_svg.h"

void report_begin(const char *title, enum plot_theme theme, struct buf *out);
/* name: of the files that a reader of the page saves. */
void report_run(const struct verdict *v, const char *name, enum plot_theme theme, struct buf *out);
void report_end(struct buf *out);

#endif
