/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of runs as SVG: bus bandwidth over size with the limit, time over size, and how long
 * each rank took at each size. They bring their own background; colours are classes, so that one
 * style serves light and dark. Pure. */
#ifndef DRARUN_LIB_BENCH_PLOT_SVG_H
#define DRARUN_LIB_BENCH_PLOT_SVG_H

#include "lib/base/buf.h"
#include "lib/bench/verdict.h"

enum plot_theme { PLOT_BOTH, PLOT_LIGHT, PLOT_DARK }; /* both: as the reader's system prefers */

/* An <svg> element, also a document of its own. False, and nothing is added, when there is nothing
 * to draw: no row was measured, or no row has times of ranks. */
bool plot_bandwidth(const struct verdict *v, enum plot_theme theme, struct buf *out);
/* The time of a call, both scales logarithmic. */
bool plot_latency(const struct verdict *v, enum plot_theme theme, struct buf *out);
/* The bandwidths of several runs; false where fewer than two have a figure. Draws the first
 * PLOT_RUNS_MAX of them. names: one for each run, for the legend. */
#define PLOT_RUNS_MAX 6u
bool plot_runs(const struct verdict *list, char *const *names, size_t count, enum plot_theme theme,
               struct buf *out);
bool plot_ranks(const struct result *r, enum plot_theme theme, struct buf *out);
/* Hosts with their ranks, GPUs and the NICs that they claimed, and which NIC is whose; who is slow
 * is told apart. False also when there are too many of them. */
bool plot_hosts(const struct result *r, enum plot_theme theme, struct buf *out);

/* Text with &, <, > and quotes as entities, and no bytes that XML refuses. */
void plot_text(const char *text, struct buf *out);

#endif
