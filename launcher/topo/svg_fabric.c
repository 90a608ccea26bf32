/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "jobs/preflight/fabric.h"
#include "launcher/topo/svg_private.h"

static bool row_is_good(const json_t *fabric, uint32_t worker)
{
    for (uint32_t r = 0; r < fabric_rail_count(fabric); r++) {
        char state = fabric_state(fabric, worker, r);
        if (state != FABRIC_GOOD && state != FABRIC_NONE)
            return false;
    }
    return true;
}

/* All rows where there are few, else those in which something is wrong, and the drawn worker's. */
static bool row_is_wanted(const struct topo_view *view, uint32_t worker)
{
    return fabric_workers(view->fabric) <= ROWS_MAX || worker == view->worker ||
           !row_is_good(view->fabric, worker);
}

static uint32_t count_rows(const struct topo_view *view)
{
    uint32_t rows = 0;
    for (uint32_t w = 0; w < fabric_workers(view->fabric); w++)
        rows += row_is_wanted(view, w);
    return rows < ROWS_MAX ? rows : ROWS_MAX;
}

/* Title, legend, rails' numbers, rows, and how many more there are. */
int svg_fabric_height(const struct topo_view *view)
{
    return view->fabric ? (4 + (int)count_rows(view)) * ROW_H + MARGIN : 0;
}

static void add_row(struct picture *p, uint32_t worker, int y)
{
    const struct topo_view *view = p->view;
    char name[32];
    snprintf(name, sizeof name, "worker %u", worker);
    svg_text(p, MARGIN, y + 13, worker == view->worker ? "name" : "small", name);
    for (uint32_t r = 0; r < fabric_rail_count(view->fabric); r++)
        svg_cell(p, MARGIN + LABEL_W + (int)r * RAIL_W, y, fabric_state(view->fabric, worker, r));
}

static void add_fabric_legend(struct picture *p, int y)
{
    static const struct {
        char state;
        const char *text;
        int width;
    } entries[] = {{FABRIC_GOOD, "good", 74},
                   {FABRIC_FAILED, "the NIC cannot be used", 186},
                   {FABRIC_UNREACHED, "does not reach the next worker", 226},
                   {FABRIC_UNKNOWN, "not known", 0}};
    int x = MARGIN;
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        svg_cell(p, x, y, entries[i].state);
        svg_text(p, x + CELL + 8, y + 13, "small", entries[i].text);
        x += entries[i].width;
    }
}

static void add_rest(struct picture *p, uint32_t shown, int y)
{
    uint32_t count = fabric_workers(p->view->fabric), bad = 0;
    char text[96];
    for (uint32_t w = 0; w < count; w++)
        bad += !row_is_good(p->view->fabric, w);
    snprintf(text, sizeof text, "%u of %u workers are shown; something is wrong with %u", shown,
             count, bad);
    svg_text(p, MARGIN, y + 13, "small", text);
}

void svg_fabric(struct picture *p, int y)
{
    const struct topo_view *view = p->view;
    uint32_t rows = count_rows(view), shown = 0;
    struct buf title = BUF_INIT;
    fabric_line(view->fabric, &title);
    p->out->failed |= title.failed;
    svg_text(p, MARGIN, y + 13, "title", title.data ? title.data : "");
    buf_done(&title);
    add_fabric_legend(p, y + ROW_H);
    y += 2 * ROW_H;
    for (uint32_t r = 0; r < fabric_rail_count(view->fabric); r++) {
        char number[16];
        snprintf(number, sizeof number, "%u", r);
        svg_text(p, MARGIN + LABEL_W + (int)r * RAIL_W + 4, y + 13, "small", number);
    }
    svg_text(p, MARGIN, y + 13, "small", "rail");
    for (uint32_t w = 0; w < fabric_workers(view->fabric) && shown < rows; w++)
        if (row_is_wanted(view, w))
            add_row(p, w, y + (int)++shown * ROW_H);
    if (shown < fabric_workers(view->fabric))
        add_rest(p, shown, y + (int)(shown + 1) * ROW_H);
    else if (!view->nic_states)
        svg_text(p, MARGIN, y + (int)(shown + 1) * ROW_H + 13, "small",
                 "The worker has not as many rails as its plan has NICs: none is marked above.");
}
