/* SPDX-License-Identifier: Apache-2.0 */
/* What the pictures share. */
#ifndef DRARUN_LIB_BENCH_PLOT_PRIVATE_H
#define DRARUN_LIB_BENCH_PLOT_PRIVATE_H

#include "lib/bench/plot_svg.h"

#define PLOT_WIDTH 860

/* Up to its background; `what` is for who cannot see it. Colours below are names of the style's. */
void plot_begin(int width, int height, const char *what, enum plot_theme theme, struct buf *out);
void plot_label(struct buf *out, const char *colour, double x, double y, const char *anchor,
                int size, const char *text);
void plot_stroke(struct buf *out, const char *colour, double x1, double y1, double x2, double y2,
                 const char *more);

/* Above the median of its size, per cent, over all sizes. */
struct plot_slowness {
    size_t rank;
    double percent;
};

/* Of all ranks; returns how many sizes have times of ranks. room: as many numbers as ranks. */
size_t plot_slowness(const struct result *r, struct plot_slowness *list, double *room);

#endif
