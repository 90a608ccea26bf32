/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "launcher/topo/svg_private.h"

/* Of the node of a worker, which is that of consecutive ones. */
static uint32_t count_workers(const struct view_job *job, uint32_t worker)
{
    uint32_t count = 1;
    const char *node = job->nodes[worker];
    while (node && worker + count < job->workers && job->nodes[worker + count] &&
           strcmp(job->nodes[worker + count], node) == 0)
        count++;
    return count;
}

static uint32_t count_different(const char *const *names, uint32_t count, bool *ret_all_known)
{
    uint32_t found = 0;
    *ret_all_known = true;
    for (uint32_t i = 0; i < count; i++) {
        bool first = names[i];
        for (uint32_t j = 0; first && j < i; j++)
            first = !names[j] || strcmp(names[i], names[j]) != 0;
        found += first;
        *ret_all_known &= names[i] != NULL;
    }
    return found;
}

/* "4 workers on 2 nodes; NVLink joins the GPUs of each NVLink domain: 1" */
void svg_job_words(const struct view_job *job, struct buf *out)
{
    bool nodes_known = false, domains_known = false;
    uint32_t nodes = count_different(job->nodes, job->workers, &nodes_known);
    uint32_t domains = count_different(job->domains, job->workers, &domains_known);
    buf_printf(out, "%u worker%s", job->workers, job->workers == 1 ? "" : "s");
    if (nodes_known)
        buf_printf(out, " on %u node%s", nodes, nodes == 1 ? "" : "s");
    if (domains > 0)
        buf_printf(out, "; %u NVLink domain%s%s", domains, domains == 1 ? "" : "s",
                   domains_known ? "" : " or more");
}

static int chips_width(uint32_t workers)
{
    int chips = (int)(workers < 8 ? workers : 8) * CHIP_W + 8;
    return chips < 76 ? 76 : chips;
}

/* A box for each node with its workers, the drawn one marked. Returns the y below; draw: false
 * measures. */
static int add_nodes(struct picture *p, int y, bool draw)
{
    const struct view_job *job = p->view->job;
    int x = MARGIN, height = LINE + CHIP_H + 6;
    uint32_t shown = 0, w = 0;
    for (; w < job->workers && shown < NODES_MAX; shown++) {
        uint32_t count = count_workers(job, w);
        int width = chips_width(count), limit = p->width - MARGIN;
        char name[64];
        if (x > MARGIN && x + width > limit) {
            x = MARGIN;
            y += height + 6;
        }
        snprintf(name, sizeof name, "%.60s", job->nodes[w] ? job->nodes[w] : "node not known");
        svg_fit(name, width - 8, 6);
        if (draw) {
            svg_rect(p, x, y, width, height, "node-box");
            svg_text(p, x + 6, y + 13, job->nodes[w] ? "small" : "small dim", name);
        }
        for (uint32_t i = 0; draw && i < count && i < 8; i++) {
            bool here = w + i == job->worker;
            char number[16];
            snprintf(number, sizeof number, i == 7 && count > 8 ? "..." : "%u", w + i);
            int left = x + 4 + (int)i * CHIP_W;
            svg_rect(p, left + 1, y + LINE, CHIP_W - 2, CHIP_H, here ? "chip-here" : "chip");
            svg_text(p, left + CHIP_W / 2, y + LINE + 14,
                     here ? "small mid chip-text-here" : "small mid", number);
        }
        x += width + 8;
        w += count;
    }
    y += height;
    if (w < job->workers) {
        char rest[64];
        snprintf(rest, sizeof rest, "workers %u to %u are not shown", w, job->workers - 1);
        if (draw)
            svg_text(p, MARGIN, y + LINE, "small", rest);
        y += LINE + 4;
    }
    return y + 12;
}

static int add_line(struct picture *p, int y, const char *class_name, const char *text, bool draw)
{
    if (draw)
        svg_text(p, MARGIN, y + 12, class_name, text);
    return y + LINE;
}

static int add_legend_entry(struct picture *p, int y, const char *class_name, const char *text,
                            bool draw)
{
    if (draw) {
        buf_printf(p->out, "<path d=\"M%d %dH%d\" class=\"link %s\"/>\n", MARGIN, y + 8,
                   MARGIN + 26, class_name);
        svg_text(p, MARGIN + 34, y + 12, "small", text);
    }
    return y + LINE;
}

/* The kinds of lines that there are, in words. */
static int add_legend(struct picture *p, int y, bool draw)
{
    for (int path = 0; path < TOPO_PATH_COUNT; path++) {
        char text[128];
        snprintf(text, sizeof text, "%s: %s", topo_path_name((enum topo_path)path),
                 view_path_meaning((enum topo_path)path));
        if (p->used[path])
            y = add_legend_entry(p, y, svg_path_class((enum topo_path)path), text, draw);
    }
    if (view_claimed_known(p->view))
        y = add_line(p, y, "small", "thick frame: claimed; dashed frame: not", draw);
    if (p->view->host->partial)
        y = add_line(p, y, "small dim",
                     "from ResourceSlices: what they do not say is grey (link speeds, switches)",
                     draw);
    return y;
}

/* Title, the job, what the lines mean. Returns the y below; draw: false measures. */
int svg_head(struct picture *p, const char *title, const char *words, bool draw)
{
    int y = MARGIN;
    if (draw)
        svg_text(p, MARGIN, y + 14, "head", title);
    y += HEAD + 6;
    if (words[0])
        y = add_line(p, y, "small", words, draw);
    if (p->view->job && p->view->job->workers > 1)
        y = add_nodes(p, y + 4, draw);
    return add_legend(p, y, draw) + 8;
}
