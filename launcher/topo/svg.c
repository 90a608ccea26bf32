/* SPDX-License-Identifier: Apache-2.0 */
/* A picture: what it is of, the whole job at a glance where the node is of one, and a panel for
 * each NUMA node, in it host bridges, in them switches; GPUs in the upper row, NICs in the lower
 * one, and the pairing as lines in the corridor between, which holds nothing else. What is not
 * known is grey. The picture brings its own background, light or dark as the reader's system is.
 * Below it stands what the check of a job's NICs found, where that was given.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "launcher/topo/svg_private.h"
#include "lib/base/cleanup.h"

static const char style[] =
    "<style>\n"
    "text{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#1c2430}\n"
    ".head{font-size:15px;font-weight:bold}\n"
    ".title{font-size:13px;font-weight:bold}.name{font-size:13px;font-weight:bold}\n"
    ".small{font-size:10.5px}.dim{fill:#6b7685}.mid{text-anchor:middle}\n"
    ".page{fill:#ffffff}.numa{fill:#f1f4f8;stroke:#8492a6}\n"
    ".root{fill:#ffffff;stroke:#8492a6}.switch{fill:#f7f3e8;stroke:#b09a5b}\n"
    ".gpu{fill:#d8efd3;stroke:#3f7d33}.nic{fill:#d6e6f7;stroke:#2f6299}\n"
    ".claimed{stroke-width:3.5}.other{fill-opacity:.35;stroke-dasharray:4 3}\n"
    ".node-box{fill:#f1f4f8;stroke:#8492a6}.chip{fill:#ffffff;stroke:#8492a6}\n"
    ".chip-here{fill:#1f4e79;stroke:#1f4e79}.chip-text-here{fill:#ffffff}\n"
    ".link{fill:none;stroke-width:3}\n"
    ".pix{stroke:#2e8b3d}.pxb{stroke:#1f77b4}.node{stroke:#d98200}.sys{stroke:#c62828}\n"
    ".unsure{stroke:#8492a6;stroke-dasharray:5 4}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#e6ebf2}.dim{fill:#9aa7b8}.page{fill:#12171e}.numa,.node-box{fill:#1b232d}\n"
    ".root,.chip{fill:#12171e}.switch{fill:#2a2518}\n"
    ".gpu{fill:#1f3a1b;stroke:#6fbf5f}.nic{fill:#1a2f47;stroke:#6fa8dc}\n"
    ".chip-here{fill:#6fa8dc;stroke:#6fa8dc}.chip-text-here{fill:#12171e}\n"
    ".pix{stroke:#57c26a}.pxb{stroke:#5aa9e6}.node{stroke:#f0a63a}.sys{stroke:#ef6f6c}\n"
    "}\n"
    "</style>\n";

static const char fabric_style[] =
    "<style>\n"
    ".good{fill:#2e8b3d}.bad{fill:#c62828}.unknown{fill:#6b7685}\n"
    ".sign{font-size:13px;font-weight:bold;fill:#ffffff;text-anchor:middle}\n"
    "</style>\n";

/* How wide a line of text may be; letters are not measured. */
static void widen(struct picture *p, const char *text, int per_char)
{
    int width = 2 * MARGIN + (int)strlen(text) * per_char;
    p->width = width > p->width ? width : p->width;
}

static void add_attribute(struct picture *p, const char *name, const char *text)
{
    buf_printf(p->out, " %s=\"", name);
    for (; *text; text++)
        if (strchr("<>&\"", *text))
            buf_printf(p->out, "&#%d;", *text);
        else
            buf_add(p->out, text, 1);
    buf_add_str(p->out, "\"");
}

static void draw(struct picture *p, const char *title, const char *words, int below)
{
    const struct topo_view *view = p->view;
    buf_printf(p->out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "viewBox=\"0 0 %d %d\" role=\"img\"",
               p->width, p->height, p->width, p->height);
    add_attribute(p, "aria-label", title);
    buf_printf(p->out, ">\n%s%s", style, view->fabric ? fabric_style : "");
    buf_printf(p->out, "<rect width=\"%d\" height=\"%d\" class=\"page\"/>\n", p->width, p->height);
    svg_head(p, title, words, true);
    for (size_t i = 0, end; i < p->count; i = end) {
        end = svg_end_of_panel(p, i);
        svg_panel(p, i, end);
    }
    for (size_t i = 0; i < view->link_count; i++)
        svg_link(p, &view->links[i]);
    for (size_t i = 0; i < p->count; i++)
        svg_box(p, &p->leaves[i]);
    if (view->fabric)
        svg_fabric(p, below);
    buf_add_str(p->out, "</svg>\n");
}

void topo_svg(const struct topo_view *view, struct buf *out)
{
    size_t most = view->host->gpu_count + view->nic_count + 1;
    cleanup_free struct leaf *leaves = calloc(most, sizeof *leaves);
    CLEANUP(buf_done) struct buf title = BUF_INIT, words = BUF_INIT;
    struct picture p = {.view = view, .leaves = leaves, .width = 460, .out = out};
    if (view->job) {
        buf_add_str(&title, view->job->title);
        svg_job_words(view->job, &words);
        buf_add_str(&words, "; the node: ");
        view_summary(view, &words);
    } else {
        view_summary(view, &title);
    }
    if (!view->job && view->host->gpu_count > 1 && view->host->nvswitch_count == 0)
        buf_add_str(&words, "NVLink is not part of PCI and is not shown");
    if (!leaves || title.failed || words.failed) {
        out->failed = true;
        return;
    }
    const char *line = words.data ? words.data : "";
    for (size_t i = 0; i < view->host->gpu_count; i++)
        svg_add_leaf(&p, i, TOPO_NONE);
    for (size_t i = 0; i < view->nic_count; i++)
        svg_add_leaf(&p, TOPO_NONE, i);
    for (size_t i = 0; i < view->link_count; i++)
        p.used[view->links[i].path] = true;
    qsort(leaves, p.count, sizeof *leaves, svg_order);
    svg_place_all(&p, 0); /* for the width, which the head needs */
    widen(&p, title.data, 10);
    widen(&p, line, 6);
    int below, wide = LABEL_W + RAIL_W * (int)(view->fabric ? fabric_rail_count(view->fabric) : 0);
    p.width = view->fabric && p.width < 2 * MARGIN + wide ? 2 * MARGIN + wide : p.width;
    svg_place_all(&p, svg_head(&p, title.data, line, false));
    below = p.height;
    p.height += svg_fabric_height(view);
    draw(&p, title.data, line, below);
}
