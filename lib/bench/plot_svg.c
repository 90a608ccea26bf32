/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/plot_svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/order.h"
#include "lib/bench/plot_private.h"

#define LEFT 64 /* of the plot's area */
#define RIGHT 24
#define TOP 40
#define AREA_H 300
#define BOTTOM 46

/* ---- style ---- */

/* name, light, dark */
static const char *const colours[][3] = {
    {"paper", "#ffffff", "#15181d"}, {"ink", "#1c2330", "#e4e8ee"},
    {"faint", "#667085", "#97a1b0"}, {"grid", "#e3e6eb", "#2b3139"},
    {"one", "#1f6feb", "#6cb0ff"},   {"two", "#c2570c", "#ffa657"},
    {"limit", "#b42318", "#ff7b72"}, {"seen", "#2f7d4f", "#7ee2a8"},
    {"box", "#f4f6f9", "#1e242c"},   {"five", "#7a3fb5", "#c79bff"},
    {"six", "#0b7a83", "#5cd0d8"},
};

static void rules(size_t theme, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(colours); i++)
        buf_printf(out, ".f-%s{fill:%s}.s-%s{stroke:%s}", colours[i][0], colours[i][theme],
                   colours[i][0], colours[i][theme]);
}

/* In each picture: not every reader of pages takes rules from outside of it. */
static void style(enum plot_theme theme, struct buf *out)
{
    buf_add_str(out, "svg text{font-family:system-ui,'DejaVu Sans',sans-serif}");
    rules(theme == PLOT_DARK ? 2 : 1, out);
    if (theme != PLOT_BOTH)
        return;
    buf_add_str(out, "@media (prefers-color-scheme:dark){");
    rules(2, out);
    buf_add_str(out, "}");
}

void plot_text(const char *text, struct buf *out)
{
    for (const char *p = text; *p; p++) {
        const char *entity = *p == '&'    ? "&amp;"
                             : *p == '<'  ? "&lt;"
                             : *p == '>'  ? "&gt;"
                             : *p == '"'  ? "&quot;"
                             : *p == '\'' ? "&#39;"
                                          : NULL;
        if (entity)
            buf_add_str(out, entity);
        else
            buf_printf(out, "%c", *p >= ' ' && *p <= '~' ? *p : '?');
    }
}

void plot_begin(int width, int height, const char *what, enum plot_theme theme, struct buf *out)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\" role=\"img\" aria-label=\"",
               width, height, width, height);
    plot_text(what, out);
    buf_add_str(out, "\">\n");
    buf_add_str(out, "<style>");
    style(theme, out);
    buf_add_str(out, "</style>\n");
    buf_printf(out, "<rect class=\"f-paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void plot_label(struct buf *out, const char *colour, double x, double y, const char *anchor,
                int size, const char *text)
{
    buf_printf(out,
               "<text class=\"f-%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">",
               colour, x, y, anchor, size);
    plot_text(text, out);
    buf_add_str(out, "</text>\n");
}

void plot_stroke(struct buf *out, const char *colour, double x1, double y1, double x2, double y2,
                 const char *more)
{
    buf_printf(out, "<line class=\"s-%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n",
               colour, x1, y1, x2, y2, more);
}

/* ---- bandwidth over size ---- */

struct axes {
    double x0, x1;      /* log2 of bytes */
    double bottom, top; /* GB/s, or us */
    bool times;         /* us on a logarithmic scale, where bottom is above 0 */
    double width;
};

static double x_of(const struct axes *a, uint64_t bytes)
{
    double at = log2(bytes ? (double)bytes : 1);
    return LEFT + (a->x1 > a->x0 ? (at - a->x0) / (a->x1 - a->x0) : .5) * a->width;
}

static double y_of(const struct axes *a, double value)
{
    double part = a->times ? log(value / a->bottom) / log(a->top / a->bottom)
                           : (value - a->bottom) / (a->top - a->bottom);
    return TOP + AREA_H - part * AREA_H;
}

static double value_of(const struct axes *a, const struct result_half *half)
{
    return a->times ? half->seconds * 1e6 : half->busbw;
}

#define SCALED_LEAST 1e-30 /* GB/s */

/* 1, 2 or 5 times a power of ten: at most six lines. */
static double step_of(double top)
{
    double power = pow(10, floor(log10(top / 6)));
    double units = top / 6 / power;
    return power * (units <= 1 ? 1 : units <= 2 ? 2 : units <= 5 ? 5 : 10);
}

/* Where the scale of such values ends: at 1 where no steps of it would be numbers. */
static double scale_end(double highest)
{
    return highest > SCALED_LEAST && highest <= RESULT_MOST ? highest * 1.08 : 1;
}

#define NO_AXES                                                                                    \
    (struct axes)                                                                                  \
    {                                                                                              \
        .x0 = INFINITY, .x1 = -INFINITY, .width = PLOT_WIDTH - LEFT - RIGHT                        \
    }

static void widen(const struct result *r, struct axes *a)
{
    for (size_t i = 0; i < r->row_count; i++) {
        double at = log2(r->rows[i].bytes ? (double)r->rows[i].bytes : 1);
        a->x0 = at < a->x0 ? at : a->x0;
        a->x1 = at > a->x1 ? at : a->x1;
    }
}

static bool axes_of(const struct verdict *v, struct axes *ret)
{
    struct axes a = NO_AXES;
    if (!v->best)
        return false;
    widen(&v->run->result, &a);
    a.top = v->best->busbw > v->limit.gbs ? v->best->busbw : v->limit.gbs;
    a.top = v->seen && v->seen->high > a.top ? v->seen->high : a.top;
    a.top = scale_end(a.top);
    *ret = a;
    return true;
}

static void draw_level(const struct axes *a, double at, struct buf *out)
{
    char text[32];
    plot_stroke(out, "grid", LEFT, y_of(a, at), LEFT + a->width, y_of(a, at), "");
    snprintf(text, sizeof text, "%g", at);
    plot_label(out, "faint", LEFT - 8, y_of(a, at) + 4, "end", 12, text);
}

static void draw_grid(const struct axes *a, struct buf *out)
{
    char text[32];
    double step = a->times ? 0 : step_of(a->top);
    for (double at = 0; !a->times && at <= a->top; at += step)
        draw_level(a, at, out);
    for (double at = a->bottom; a->times && at <= a->top * 1.001; at *= 10)
        draw_level(a, at, out);
    unsigned every = (unsigned)ceil((a->x1 - a->x0) / 9);
    every = every ? every : 1;
    for (double at = ceil(a->x0); at <= a->x1; at += every) {
        uint64_t bytes = (uint64_t)exp2(at);
        result_size_text(bytes, text, sizeof text);
        plot_label(out, "faint", x_of(a, bytes), TOP + AREA_H + 20, "middle", 12, text);
        plot_stroke(out, "grid", x_of(a, bytes), TOP + AREA_H, x_of(a, bytes), TOP + AREA_H + 5,
                    "");
    }
    plot_label(out, "faint", LEFT + a->width, TOP + AREA_H + 38, "end", 12, "size");
    plot_label(out, "faint", LEFT - 8, TOP - 10, "end", 12, a->times ? "us" : "GB/s");
}

static void draw_series(const struct result *r, const struct axes *a, bool in_place,
                        const char *colour, struct buf *out)
{
    struct buf points = BUF_INIT;
    for (size_t i = 0; i < r->row_count; i++) {
        const struct result_row *row = &r->rows[i];
        const struct result_half *half = in_place ? &row->in_place : &row->out_of_place;
        if (half->measured && (!a->times || half->seconds > 0))
            buf_printf(&points, "%.1f,%.1f ", x_of(a, row->bytes), y_of(a, value_of(a, half)));
    }
    if (points.len)
        buf_printf(out,
                   "<polyline class=\"s-%s\" fill=\"none\" stroke-width=\"2\" points=\"%s\"/>\n",
                   colour, points.data);
    for (size_t i = 0; i < r->row_count; i++) {
        const struct result_row *row = &r->rows[i];
        const struct result_half *half = in_place ? &row->in_place : &row->out_of_place;
        char size[24];
        result_size_text(row->bytes, size, sizeof size);
        if (half->measured && (!a->times || half->seconds > 0))
            buf_printf(out,
                       "<circle class=\"f-%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s%s: %.2f "
                       "GB/s, %.2f us</title></circle>\n",
                       colour, x_of(a, row->bytes), y_of(a, value_of(a, half)), size,
                       in_place ? " in place" : "", half->busbw, half->seconds * 1e6);
    }
    buf_done(&points);
}

static void draw_legend(const struct result *r, struct buf *out)
{
    bool in_place = false;
    for (size_t i = 0; i < r->row_count; i++)
        in_place = in_place || r->rows[i].in_place.measured;
    buf_printf(out, "<circle class=\"f-one\" cx=\"%d\" cy=\"16\" r=\"4\"/>\n", LEFT + 6);
    plot_label(out, "ink", LEFT + 16, 20, "start", 13, "out of place");
    if (in_place) {
        buf_printf(out, "<circle class=\"f-two\" cx=\"%d\" cy=\"16\" r=\"4\"/>\n", LEFT + 126);
        plot_label(out, "ink", LEFT + 136, 20, "start", 13, "in place");
    }
}

/* The range as a bar, the single figure that it comes from as a diamond on it. */
static void draw_seen(const struct known_seen *seen, const struct axes *a, struct buf *out)
{
    double at = seen ? log2((double)seen->bytes) : 0;
    if (!seen || at > a->x1 || at < a->x0)
        return;
    double x = x_of(a, seen->bytes), low = y_of(a, seen->low), high = y_of(a, seen->high);
    buf_printf(out,
               "<path class=\"s-seen\" fill=\"none\" stroke-width=\"1.5\" "
               "d=\"M%.1f %.1fh10m-5 0V%.1fm-5 0h10\"/>\n",
               x - 5, low, high);
    if (seen->busbw > 0)
        buf_printf(out, "<path class=\"f-seen\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/>\n", x,
                   y_of(a, seen->busbw) - 5);
    plot_label(out, "seen", x - 9, (low + high) / 2 + 16, "end", 12, "others");
}

bool plot_bandwidth(const struct verdict *v, enum plot_theme theme, struct buf *out)
{
    struct axes a;
    char text[160];
    if (!axes_of(v, &a))
        return false;
    plot_begin(PLOT_WIDTH, TOP + AREA_H + BOTTOM, "bus bandwidth over size", theme, out);
    draw_grid(&a, out);
    draw_legend(&v->run->result, out);
    if (v->limit.gbs > 0) {
        double y = y_of(&a, v->limit.gbs);
        plot_stroke(out, "limit", LEFT, y, LEFT + a.width, y,
                    "stroke-width=\"1.5\" stroke-dasharray=\"7 4\"");
        snprintf(text, sizeof text, "limit %.1f GB/s%s", v->limit.gbs,
                 v->limit.assumed ? " (assumed)" : "");
        plot_label(out, "limit", LEFT + 6, y - 5, "start", 12, text);
    }
    draw_series(&v->run->result, &a, false, "one", out);
    draw_series(&v->run->result, &a, true, "two", out);
    draw_seen(v->seen, &a, out);
    buf_add_str(out, "</svg>\n");
    return true;
}

/* ---- time over size ---- */

static void stretch(const struct result_half *half, struct axes *a)
{
    double us = half->seconds * 1e6;
    if (!half->measured || !(us > 0))
        return;
    a->bottom = us < a->bottom ? us : a->bottom;
    a->top = us > a->top ? us : a->top;
}

bool plot_latency(const struct verdict *v, enum plot_theme theme, struct buf *out)
{
    const struct result *r = &v->run->result;
    struct axes a = NO_AXES;
    a.times = true;
    a.bottom = INFINITY;
    for (size_t i = 0; v->best && i < r->row_count; i++) {
        stretch(&r->rows[i].out_of_place, &a);
        stretch(&r->rows[i].in_place, &a);
    }
    if (!(a.top > 0))
        return false;
    widen(r, &a);
    a.bottom = pow(10, floor(log10(a.bottom)));
    a.top = pow(10, ceil(log10(a.top) + 1e-9));
    plot_begin(PLOT_WIDTH, TOP + AREA_H + BOTTOM, "time over size", theme, out);
    draw_grid(&a, out);
    draw_legend(r, out);
    draw_series(r, &a, false, "one", out);
    draw_series(r, &a, true, "two", out);
    buf_add_str(out, "</svg>\n");
    return true;
}

/* ---- several runs ---- */

static const char *const of_runs[] = {"one", "two", "seen", "limit", "five", "six"};

static void draw_run_name(const char *name, size_t i, struct buf *out)
{
    int x = LEFT + (int)(i % 2) * 390, y = 16 + (int)(i / 2) * 20;
    char text[52];
    snprintf(text, sizeof text, "%s", name);
    buf_printf(out, "<circle class=\"f-%s\" cx=\"%d\" cy=\"%d\" r=\"4\"/>\n", of_runs[i], x + 6, y);
    plot_label(out, "ink", x + 16, y + 4, "start", 13, text);
}

static bool has_out_of_place(const struct result *r)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (r->rows[i].out_of_place.measured)
            return true;
    return false;
}

bool plot_runs(const struct verdict *list, char *const *names, size_t count, enum plot_theme theme,
               struct buf *out)
{
    struct axes a = NO_AXES;
    size_t drawn[PLOT_RUNS_MAX], n = 0;
    for (size_t i = 0; i < count && n < PLOT_RUNS_MAX; i++) {
        if (!list[i].best || list[i].run->result.stand_in)
            continue;
        drawn[n++] = i;
        widen(&list[i].run->result, &a);
        a.top = list[i].best->busbw > a.top ? list[i].best->busbw : a.top;
    }
    if (n < 2)
        return false;
    a.top = scale_end(a.top);
    int above = ((int)n + 1) / 2 * 20;
    plot_begin(PLOT_WIDTH, TOP + AREA_H + BOTTOM + above, "bus bandwidth of several runs", theme,
               out);
    for (size_t i = 0; i < n; i++)
        draw_run_name(names[drawn[i]], i, out);
    buf_printf(out, "<g transform=\"translate(0 %d)\">\n", above);
    draw_grid(&a, out);
    for (size_t i = 0; i < n; i++) {
        const struct result *r = &list[drawn[i]].run->result;
        draw_series(r, &a, !has_out_of_place(r), of_runs[i], out);
    }
    buf_add_str(out, "</g>\n</svg>\n");
    return true;
}

/* ---- ranks ---- */

#define RANKS_MAX 128u /* drawn; of more, the slowest */
#define CELL_H 14
#define NODE_MAX 36 /* letters of a node's name */

static const struct result_half *with_ranks(const struct result_row *row, size_t ranks)
{
    const struct result_half *halves[] = {&row->out_of_place, &row->in_place};
    for (size_t i = 0; i < 2; i++)
        if (halves[i]->measured && halves[i]->ranks && halves[i]->rank_count == ranks)
            return halves[i];
    return NULL;
}

static double median_of(const struct result_half *half, double *room)
{
    memcpy(room, half->ranks, half->rank_count * sizeof *room);
    qsort(room, half->rank_count, sizeof *room, order_doubles);
    return room[half->rank_count / 2];
}

static int by_slowness(const void *a, const void *b)
{
    const struct plot_slowness *x = a, *y = b;
    return x->percent > y->percent ? -1 : x->percent < y->percent;
}

static int by_rank(const void *a, const void *b)
{
    const struct plot_slowness *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

size_t plot_slowness(const struct result *r, struct plot_slowness *list, double *room)
{
    size_t rows = 0;
    for (size_t k = 0; k < r->rank_count; k++)
        list[k] = (struct plot_slowness){k, 0};
    for (size_t i = 0; i < r->row_count; i++) {
        const struct result_half *half = with_ranks(&r->rows[i], r->rank_count);
        double median = half ? median_of(half, room) : 0;
        rows += median > 0;
        for (size_t k = 0; median > 0 && k < r->rank_count; k++)
            list[k].percent += 100 * (half->ranks[k] / median - 1);
    }
    for (size_t k = 0; rows && k < r->rank_count; k++)
        list[k].percent /= (double)rows;
    return rows;
}

/* "rank 3  node-7 mlx5_0". Of a long name its middle is left out: nodes of a pool differ at the end
 * of their names, others at the start. */
static void rank_name(const struct result *r, size_t rank, char *text, size_t size)
{
    const struct result_rank *known = &r->ranks[rank];
    const char *node = known->node[0] ? known->node : known->host;
    const char *nic = result_own_nics(known), *between = nic[0] ? " " : "";
    size_t len = strlen(node);
    if (len > NODE_MAX)
        snprintf(text, size, "rank %u  %.*s..%s%s%.24s", known->rank, NODE_MAX / 2 - 1, node,
                 node + len - NODE_MAX / 2 + 1, between, nic);
    else
        snprintf(text, size, "rank %u  %s%s%.24s", known->rank, node, between, nic);
}

/* Of the widest name, with a margin on both sides; letters are not measured. */
static int names_width(const struct result *r, const struct plot_slowness *list, size_t count)
{
    size_t longest = 0;
    char name[96];
    for (size_t i = 0; i < count; i++) {
        rank_name(r, list[i].rank, name, sizeof name);
        longest = strlen(name) > longest ? strlen(name) : longest;
    }
    return 20 + (int)(longest * 13 / 2);
}

/* Faster to slower than the median of its size: transparent at it. */
static void heat_cell(struct buf *out, double x, double y, double width, double percent,
                      const char *what)
{
    double strength = fabs(percent) / 20;
    buf_printf(out,
               "<rect class=\"f-%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
               "fill-opacity=\"%.2f\"><title>",
               percent > 0 ? "limit" : "one", x, y, width - 1, CELL_H - 1,
               strength > 1 ? 1 : strength);
    plot_text(what, out);
    buf_add_str(out, "</title></rect>\n");
}

/* What all rows share. */
struct heat {
    const struct result *result;
    int left;     /* of the cells */
    double width; /* of a cell */
    double *room; /* for as many numbers as ranks */
    struct buf *out;
};

static void heat_row(const struct heat *h, const struct plot_slowness *of, double y)
{
    const struct result *r = h->result;
    char name[96], what[192], size[24];
    size_t column = 0;
    rank_name(r, of->rank, name, sizeof name);
    plot_label(h->out, "ink", h->left - 10, y + CELL_H - 4, "end", 11, name);
    for (size_t i = 0; i < r->row_count; i++) {
        const struct result_half *half = with_ranks(&r->rows[i], r->rank_count);
        double median = half ? median_of(half, h->room) : 0;
        if (!(median > 0))
            continue;
        double percent = 100 * (half->ranks[of->rank] / median - 1);
        result_size_text(r->rows[i].bytes, size, sizeof size);
        snprintf(what, sizeof what, "%s, %s: %.2f us, %+.1f %%", name, size,
                 half->ranks[of->rank] * 1e6, percent);
        heat_cell(h->out, h->left + (double)column * h->width, y, h->width, percent, what);
        column++;
    }
    snprintf(what, sizeof what, "%+.1f %%", of->percent);
    plot_label(h->out, "faint", PLOT_WIDTH - RIGHT, y + CELL_H - 4, "end", 11, what);
}

/* The first size above its column, the last one above its own. */
static void heat_sizes(const struct heat *h, size_t columns)
{
    const struct result_row *first = NULL, *last = NULL;
    char size[24];
    for (size_t i = 0; i < h->result->row_count; i++) {
        const struct result_half *half = with_ranks(&h->result->rows[i], h->result->rank_count);
        if (!half || !(median_of(half, h->room) > 0))
            continue;
        first = first ? first : &h->result->rows[i];
        last = &h->result->rows[i];
    }
    if (!first)
        return;
    result_size_text(first->bytes, size, sizeof size);
    plot_label(h->out, "faint", h->left, 34, "start", 11, size);
    if (last == first)
        return;
    result_size_text(last->bytes, size, sizeof size);
    plot_label(h->out, "faint", h->left + (double)columns * h->width, 34, "end", 11, size);
}

bool plot_ranks(const struct result *r, enum plot_theme theme, struct buf *out)
{
    cleanup_free struct plot_slowness *list = calloc(r->rank_count + 1, sizeof *list);
    cleanup_free double *room = calloc(r->rank_count + 1, sizeof *room);
    if (!list || !room || r->rank_count < 2)
        return false;
    size_t rows = plot_slowness(r, list, room), shown = r->rank_count;
    if (rows == 0)
        return false;
    if (shown > RANKS_MAX) {
        qsort(list, shown, sizeof *list, by_slowness);
        shown = RANKS_MAX;
        qsort(list, shown, sizeof *list, by_rank);
    }
    struct heat h = {.result = r, .left = names_width(r, list, shown), .room = room, .out = out};
    h.width = (PLOT_WIDTH - h.left - RIGHT - 56) / (double)rows;
    plot_begin(PLOT_WIDTH, TOP + (int)shown * CELL_H + 12, "time of each rank at each size", theme,
               out);
    plot_label(
        out, "ink", 10, 16, "start", 13,
        "time of each rank against the median of its size: red slower, blue faster (20 % is full)");
    heat_sizes(&h, rows);
    plot_label(out, "faint", PLOT_WIDTH - RIGHT, 34, "end", 11, "all sizes");
    for (size_t i = 0; i < shown; i++)
        heat_row(&h, &list[i], TOP + (double)i * CELL_H);
    buf_add_str(out, "</svg>\n");
    return true;
}
