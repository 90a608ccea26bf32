/* SPDX-License-Identifier: Apache-2.0 */
/* A picture: what it is of, the whole job at a glance where the node is of one, and a panel for
 * each NUMA node, in it host bridges, in them switches; GPUs in the upper row, NICs in the lower
 * one, and the pairing as lines in the corridor between, which holds nothing else. What is not
 * known is grey. The picture brings its own background, light or dark as the reader's system is.
 * Below it stands what the check of a job's NICs found, where that was given.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "jobs/preflight/fabric.h"
#include "launcher/topo/view.h"
#include "lib/base/cleanup.h"

#define DEPTH_MAX 8u
#define CELL_W 134 /* a column */
#define BOX_W 120
#define BOX_H 54
#define HEAD 20     /* a group's title */
#define CORRIDOR 62 /* between the rows */
#define NO_LINKS 14 /* the same in a panel without a link */
#define LINE 17     /* of text above the panels */
#define CHIP_W 26   /* a worker in the job's line */
#define CHIP_H 20
#define NODES_MAX 48u /* in it */
#define MARGIN 16
#define GAP 10    /* between groups side by side */
#define WIDE 1100 /* two panels side by side when both fit */
#define CELL 18   /* a rail of a worker in the matrix, and a NIC's mark */
#define RAIL_W 24
#define ROW_H 23
#define LABEL_W 90
#define ROWS_MAX 32u /* of workers */

/* A GPU or NIC and where it is drawn. */
struct leaf {
    size_t gpu, nic; /* one of them TOPO_NONE */
    int32_t numa;
    const char *root;
    bool chain_known;
    int corridor; /* of its panel */
    struct pci_addr switches[DEPTH_MAX];
    size_t depth;
    int x, y;        /* of the box, inside its panel */
    int px, py;      /* of its panel */
    int left, right; /* of its column, inside the panel */
};

struct picture {
    const struct topo_view *view;
    struct leaf *leaves;
    size_t count;
    int width, height;
    bool used[TOPO_PATH_COUNT]; /* by a link */
    struct buf *out;
};

static const struct topo_pci *pci_of(const struct picture *p, const struct leaf *leaf)
{
    const struct topo_view *view = p->view;
    size_t index =
        leaf->gpu != TOPO_NONE ? view->host->gpus[leaf->gpu].pci : view->nics[leaf->nic].pci;
    return index == TOPO_NONE ? NULL : &view->host->pci[index];
}

/* ---- order ---- */

static void add_leaf(struct picture *p, size_t gpu, size_t nic)
{
    struct leaf *leaf = &p->leaves[p->count++];
    *leaf = (struct leaf){.gpu = gpu, .nic = nic, .numa = -1, .root = ""};
    const struct topo_pci *pci = pci_of(p, leaf);
    if (!pci)
        return;
    leaf->numa = host_numa_of(p->view->host, (size_t)(pci - p->view->host->pci));
    leaf->root = pci->place.root;
    leaf->chain_known = pci->place.chain_known;
    leaf->depth = view_switches(&pci->place, leaf->switches, DEPTH_MAX);
}

/* Whether two leaves share their first `level` switches, and the root. */
static bool together(const struct leaf *a, const struct leaf *b, size_t level)
{
    if (a->numa != b->numa || strcmp(a->root, b->root) != 0 || a->depth < level || b->depth < level)
        return false;
    for (size_t i = 0; i < level; i++)
        if (pci_addr_compare(a->switches[i], b->switches[i]) != 0)
            return false;
    return true;
}

static bool same_group(const struct leaf *a, const struct leaf *b)
{
    return a->depth == b->depth && together(a, b, a->depth);
}

static int order(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    int rc = x->numa < y->numa ? -1 : x->numa > y->numa;
    if (rc == 0)
        rc = (int)strlen(x->root) - (int)strlen(y->root); /* a longer domain is a larger one */
    if (rc == 0)
        rc = strcmp(x->root, y->root);
    for (size_t i = 0; rc == 0 && i < x->depth && i < y->depth; i++)
        rc = pci_addr_compare(x->switches[i], y->switches[i]);
    if (rc == 0)
        rc = x->depth < y->depth ? -1 : x->depth > y->depth;
    if (rc == 0)
        rc = x->gpu < y->gpu ? -1 : x->gpu > y->gpu; /* TOPO_NONE is the largest */
    return rc ? rc : x->nic < y->nic ? -1 : x->nic > y->nic;
}

/* ---- places ---- */

static size_t end_of_panel(const struct picture *p, size_t first)
{
    size_t end = first + 1;
    while (end < p->count && p->leaves[end].numa == p->leaves[first].numa)
        end++;
    return end;
}

static size_t deepest(const struct picture *p)
{
    size_t depth = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->leaves[i].depth > depth)
            depth = p->leaves[i].depth;
    return depth;
}

/* From a panel's top to its GPUs: its own title, the bridge's, one for each level of switches. */
static int top_of_rows(const struct picture *p)
{
    return HEAD + 8 + HEAD * (1 + (int)deepest(p)) + 8;
}

static int panel_height(const struct picture *p, const struct leaf *leaf)
{
    return top_of_rows(p) + 2 * BOX_H + leaf->corridor + 8 * (2 + (int)deepest(p));
}

/* A group's GPUs and NICs stand in the same columns, one below the other. Returns the next x. */
static int place_group(struct picture *p, size_t first, size_t end, int x)
{
    int gpus = 0, nics = 0;
    for (size_t i = first; i < end; i++) {
        struct leaf *leaf = &p->leaves[i];
        bool gpu = leaf->gpu != TOPO_NONE;
        int column = gpu ? gpus++ : nics++;
        leaf->left = x + column * CELL_W;
        leaf->right = leaf->left + CELL_W;
        leaf->x = leaf->left + (CELL_W - BOX_W) / 2;
        leaf->y = top_of_rows(p) + (gpu ? 0 : BOX_H + leaf->corridor);
    }
    return x + (gpus > nics ? gpus : nics) * CELL_W;
}

/* How much wider than its columns a frame is on each side; inner ones have none. */
static int inset(const struct picture *p, size_t level)
{
    return 5 * (int)(deepest(p) - level);
}

/* Room for the frames that end and begin between two groups. */
static int gap_between(const struct picture *p, const struct leaf *a, const struct leaf *b)
{
    size_t level = 0;
    while (level < deepest(p) && together(a, b, level))
        level++;
    return GAP + 2 * inset(p, level);
}

static bool has_link(const struct picture *p, const struct leaf *leaf)
{
    for (size_t i = 0; i < p->view->link_count; i++)
        if (leaf->gpu != TOPO_NONE ? p->view->links[i].gpu == leaf->gpu
                                   : p->view->links[i].nic == leaf->nic)
            return true;
    return false;
}

static int place_panel(struct picture *p, size_t first, size_t end)
{
    bool linked = false;
    for (size_t i = first; i < end; i++)
        linked |= has_link(p, &p->leaves[i]);
    for (size_t i = first; i < end; i++)
        p->leaves[i].corridor = linked ? CORRIDOR : NO_LINKS;
    int x = MARGIN + inset(p, 0);
    for (size_t i = first; i < end;) {
        size_t stop = i + 1;
        while (stop < end && same_group(&p->leaves[i], &p->leaves[stop]))
            stop++;
        if (i > first)
            x += gap_between(p, &p->leaves[i - 1], &p->leaves[i]);
        x = place_group(p, i, stop, x);
        i = stop;
    }
    return x + MARGIN + inset(p, 0);
}

static void move_panel(struct picture *p, size_t first, size_t end, int px, int py)
{
    for (size_t i = first; i < end; i++) {
        p->leaves[i].px = px;
        p->leaves[i].py = py;
    }
}

/* Panels in rows, as many beside each other as fit, from y on. */
static void place_all(struct picture *p, int y)
{
    int x = MARGIN, tallest = 0;
    for (size_t i = 0; i < p->count;) {
        size_t end = end_of_panel(p, i);
        int width = place_panel(p, i, end);
        if (x > MARGIN && x + width > WIDE) {
            x = MARGIN;
            y += tallest + MARGIN;
            tallest = 0;
        }
        int height = panel_height(p, &p->leaves[i]);
        tallest = height > tallest ? height : tallest;
        move_panel(p, i, end, x, y);
        x += width + MARGIN;
        if (x > p->width)
            p->width = x;
        i = end;
    }
    p->height = y + (p->count ? tallest + MARGIN : 0);
}

/* ---- drawing ---- */

static void add_text(struct picture *p, int x, int y, const char *class_name, const char *text)
{
    buf_printf(p->out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class_name);
    for (; *text; text++)
        switch (*text) {
        case '<':
            buf_add_str(p->out, "&lt;");
            break;
        case '>':
            buf_add_str(p->out, "&gt;");
            break;
        case '&':
            buf_add_str(p->out, "&amp;");
            break;
        default:
            buf_add(p->out, text, 1);
        }
    buf_add_str(p->out, "</text>\n");
}

static void add_rect(struct picture *p, int x, int y, int width, int height, const char *class_name)
{
    buf_printf(p->out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"%s\"/>\n", x, y,
               width, height, class_name);
}

/* Cut to what fits a width: a CPU list or a product may be long. */
static void fit(char *text, int width, int per_char)
{
    size_t most = (size_t)(width / per_char);
    if (strlen(text) > most && most > 1) {
        text[most - 1] = '~';
        text[most] = '\0';
    }
}

/* The frame of level 0 is the host bridge, the next ones are switches. */
static void add_frame(struct picture *p, size_t first, size_t end, size_t level)
{
    const struct leaf *leaf = &p->leaves[first];
    char title[64], addr[PCI_ADDR_TEXT];
    int left = leaf->left, right = leaf->right;
    for (size_t i = first; i < end; i++)
        right = p->leaves[i].right > right ? p->leaves[i].right : right;
    int wider = inset(p, level), y = leaf->py + HEAD + 8 + HEAD * (int)level;
    int bottom = leaf->py + panel_height(p, leaf) - 6 - 6 * (int)level;
    if (level == 0) {
        snprintf(title, sizeof title, "%s%s", leaf->root[0] ? leaf->root : "host bridge not known",
                 leaf->root[0] && !leaf->chain_known ? " (switches not known)" : "");
    } else {
        pci_addr_format(leaf->switches[level - 1], addr);
        snprintf(title, sizeof title, "switch %s", addr);
    }
    left += leaf->px - wider;
    right += leaf->px + wider;
    add_rect(p, left, y, right - left, bottom - y, level == 0 ? "root" : "switch");
    fit(title, right - left - 10, 6);
    add_text(p, left + 8, y + 14, "small", title);
}

static void add_frames(struct picture *p, size_t first, size_t end)
{
    for (size_t level = 0; level <= deepest(p); level++)
        for (size_t i = first; i < end;) {
            size_t stop = i + 1;
            while (stop < end && together(&p->leaves[i], &p->leaves[stop], level))
                stop++;
            if (p->leaves[i].depth >= level)
                add_frame(p, i, stop, level);
            i = stop;
        }
}

static void add_panel(struct picture *p, size_t first, size_t end)
{
    const struct topo_host *host = p->view->host;
    const struct leaf *leaf = &p->leaves[first];
    char title[300] = "NUMA node not known";
    int right = 0;
    for (size_t i = first; i < end; i++)
        right = p->leaves[i].right > right ? p->leaves[i].right : right;
    int width = right + MARGIN + inset(p, 0);
    for (size_t i = 0; i < host->numa_count; i++)
        if (!host->partial && (int32_t)host->numas[i].id == leaf->numa)
            snprintf(title, sizeof title, "NUMA node %d: CPUs %.250s", leaf->numa,
                     host->numas[i].cpulist);
    if (leaf->numa >= 0 && strncmp(title, "NUMA node n", 11) == 0)
        snprintf(title, sizeof title, "NUMA node %d", leaf->numa);
    add_rect(p, leaf->px, leaf->py, width, panel_height(p, leaf), "numa");
    fit(title, width - 16, 8);
    add_text(p, leaf->px + 10, leaf->py + 19, "title", title);
    add_frames(p, first, end);
}

static const char *path_class(enum topo_path path)
{
    switch (path) {
    case TOPO_PATH_PIX:
    case TOPO_PATH_SELF:
        return "pix";
    case TOPO_PATH_PXB:
    case TOPO_PATH_P2C:
        return "pxb";
    case TOPO_PATH_PHB:
    case TOPO_PATH_NODE:
        return "node";
    case TOPO_PATH_SYS:
        return "sys";
    default: /* ROOT: one of several */
        return "unsure";
    }
}

static const struct leaf *leaf_of(const struct picture *p, size_t gpu, size_t nic)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->leaves[i].gpu == gpu && p->leaves[i].nic == nic)
            return &p->leaves[i];
    return NULL;
}

/* A line in the corridor of one panel; between panels it leaves the corridor and is still on top.
 */
static void add_link(struct picture *p, const struct view_link *link)
{
    const struct leaf *gpu = leaf_of(p, link->gpu, TOPO_NONE);
    const struct leaf *nic = leaf_of(p, TOPO_NONE, link->nic);
    if (!gpu || !nic)
        return;
    int x1 = gpu->px + gpu->x + BOX_W / 2, y1 = gpu->py + gpu->y + BOX_H;
    int x2 = nic->px + nic->x + BOX_W / 2, y2 = nic->py + nic->y, middle = (y1 + y2) / 2;
    buf_printf(p->out, "<path d=\"M%d %dC%d %d %d %d %d %d\" class=\"link %s\"/>\n", x1, y1, x1,
               middle, x2, middle, x2, y2, path_class(link->path));
    if (x1 == x2) /* beside a straight line there is room for its name */
        add_text(p, x1 + 7, middle + 4, "small", topo_path_name(link->path));
}

/* A square with a sign, which says the same as its colour. */
static void add_cell(struct picture *p, int x, int y, char state)
{
    static const char *const classes[UCHAR_MAX + 1] = {[FABRIC_GOOD] = "good",
                                                       [FABRIC_FAILED] = "bad",
                                                       [FABRIC_UNREACHED] = "bad",
                                                       [FABRIC_UNKNOWN] = "unknown"};
    const char *class_name = classes[(unsigned char)state];
    const char *sign = state == FABRIC_GOOD        ? "&#x2713;"
                       : state == FABRIC_UNKNOWN   ? "?"
                       : state == FABRIC_UNREACHED ? "&#x219b;"
                                                   : "&#x2717;";
    if (!class_name)
        return; /* the worker has no such rail */
    buf_printf(p->out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" "
               "class=\"%s\"/>\n"
               "<text x=\"%d\" y=\"%d\" class=\"sign\">%s</text>\n",
               x, y, CELL, CELL, class_name, x + CELL / 2, y + CELL - 4, sign);
}

static void add_box(struct picture *p, const struct leaf *leaf)
{
    const struct topo_view *view = p->view;
    char name[80], addr[PCI_ADDR_TEXT] = "no PCI address", line[64], rate[16];
    int x = leaf->px + leaf->x, y = leaf->py + leaf->y;
    const struct topo_pci *pci = pci_of(p, leaf);
    bool gpu = leaf->gpu != TOPO_NONE;
    enum topo_tri usable = gpu ? view->host->gpus[leaf->gpu].usable : view->nics[leaf->nic].usable;
    const char *kind = gpu ? "gpu" : "nic", *claimed = "", *line_class = "small";
    if (view_claimed_known(view))
        claimed = usable == TOPO_YES ? " claimed" : usable == TOPO_NO ? " other" : "";
    if (pci && !pci->place.addr_unknown)
        pci_addr_format(pci->place.addr, addr);
    if (gpu) {
        snprintf(name, sizeof name, "GPU%zu", leaf->gpu);
        const char *product = view_gpu_name(&view->host->gpus[leaf->gpu]);
        snprintf(line, sizeof line, "%.60s", product + (strncmp(product, "NVIDIA ", 7) ? 0 : 7));
    } else {
        const struct view_nic *nic = &view->nics[leaf->nic];
        view_rate(nic->mbps, rate);
        snprintf(name, sizeof name, "%.60s", nic->name);
        if (nic->mbps)
            snprintf(line, sizeof line, "%s %s", rate, view_link_words(nic));
        else
            snprintf(line, sizeof line, "%s, speed ?", view_link_words(nic));
        line_class = nic->mbps ? "small" : "small dim";
    }
    buf_printf(p->out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" class=\"%s%s\"/>\n", x,
               y, BOX_W, BOX_H, kind, claimed);
    fit(name, BOX_W - 12, 8);
    fit(line, BOX_W - 12, 7);
    add_text(p, x + 8, y + 17, "name", name);
    add_text(p, x + 8, y + 32, "small", addr);
    add_text(p, x + 8, y + 46, line_class, line);
    if (!gpu && view->nic_states && view->nic_states[leaf->nic])
        add_cell(p, x + BOX_W - CELL - 4, y + 4, view->nic_states[leaf->nic]);
}

/* ---- what the check of the NICs found ---- */

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
static int fabric_height(const struct topo_view *view)
{
    return view->fabric ? (4 + (int)count_rows(view)) * ROW_H + MARGIN : 0;
}

static void add_row(struct picture *p, uint32_t worker, int y)
{
    const struct topo_view *view = p->view;
    char name[32];
    snprintf(name, sizeof name, "worker %u", worker);
    add_text(p, MARGIN, y + 13, worker == view->worker ? "name" : "small", name);
    for (uint32_t r = 0; r < fabric_rail_count(view->fabric); r++)
        add_cell(p, MARGIN + LABEL_W + (int)r * RAIL_W, y, fabric_state(view->fabric, worker, r));
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
        add_cell(p, x, y, entries[i].state);
        add_text(p, x + CELL + 8, y + 13, "small", entries[i].text);
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
    add_text(p, MARGIN, y + 13, "small", text);
}

static void add_fabric(struct picture *p, int y)
{
    const struct topo_view *view = p->view;
    uint32_t rows = count_rows(view), shown = 0;
    struct buf title = BUF_INIT;
    fabric_line(view->fabric, &title);
    p->out->failed |= title.failed;
    add_text(p, MARGIN, y + 13, "title", title.data ? title.data : "");
    buf_done(&title);
    add_fabric_legend(p, y + ROW_H);
    y += 2 * ROW_H;
    for (uint32_t r = 0; r < fabric_rail_count(view->fabric); r++) {
        char number[16];
        snprintf(number, sizeof number, "%u", r);
        add_text(p, MARGIN + LABEL_W + (int)r * RAIL_W + 4, y + 13, "small", number);
    }
    add_text(p, MARGIN, y + 13, "small", "rail");
    for (uint32_t w = 0; w < fabric_workers(view->fabric) && shown < rows; w++)
        if (row_is_wanted(view, w))
            add_row(p, w, y + (int)++shown * ROW_H);
    if (shown < fabric_workers(view->fabric))
        add_rest(p, shown, y + (int)(shown + 1) * ROW_H);
    else if (!view->nic_states)
        add_text(p, MARGIN, y + (int)(shown + 1) * ROW_H + 13, "small",
                 "The worker has not as many rails as its plan has NICs: none is marked above.");
}

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

/* ---- above the panels ---- */

/* Nodes are those of consecutive workers. */
struct node_span {
    uint32_t first, count; /* workers */
};

static struct node_span node_at(const struct view_job *job, uint32_t worker)
{
    struct node_span span = {worker, 1};
    const char *node = job->nodes[worker];
    while (node && worker + span.count < job->workers && job->nodes[worker + span.count] &&
           strcmp(job->nodes[worker + span.count], node) == 0)
        span.count++;
    return span;
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
static void job_words(const struct view_job *job, struct buf *out)
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

static int chips_width(const struct node_span *span)
{
    int chips = (int)(span->count < 8 ? span->count : 8) * CHIP_W + 8;
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
        struct node_span span = node_at(job, w);
        int width = chips_width(&span), limit = p->width - MARGIN;
        char name[64];
        if (x > MARGIN && x + width > limit) {
            x = MARGIN;
            y += height + 6;
        }
        snprintf(name, sizeof name, "%.60s", job->nodes[w] ? job->nodes[w] : "node not known");
        fit(name, width - 8, 6);
        if (draw) {
            add_rect(p, x, y, width, height, "node-box");
            add_text(p, x + 6, y + 13, job->nodes[w] ? "small" : "small dim", name);
        }
        for (uint32_t i = 0; draw && i < span.count && i < 8; i++) {
            bool here = w + i == job->worker;
            char number[16];
            snprintf(number, sizeof number, i == 7 && span.count > 8 ? "..." : "%u", w + i);
            int left = x + 4 + (int)i * CHIP_W;
            add_rect(p, left + 1, y + LINE, CHIP_W - 2, CHIP_H, here ? "chip-here" : "chip");
            add_text(p, left + CHIP_W / 2, y + LINE + 14,
                     here ? "small mid chip-text-here" : "small mid", number);
        }
        x += width + 8;
        w += span.count;
    }
    y += height;
    if (w < job->workers) {
        char rest[64];
        snprintf(rest, sizeof rest, "workers %u to %u are not shown", w, job->workers - 1);
        if (draw)
            add_text(p, MARGIN, y + LINE, "small", rest);
        y += LINE + 4;
    }
    return y + 12;
}

static int add_line(struct picture *p, int y, const char *class_name, const char *text, bool draw)
{
    if (draw)
        add_text(p, MARGIN, y + 12, class_name, text);
    return y + LINE;
}

static int add_legend_entry(struct picture *p, int y, const char *class_name, const char *text,
                            bool draw)
{
    if (draw) {
        buf_printf(p->out, "<path d=\"M%d %dH%d\" class=\"link %s\"/>\n", MARGIN, y + 8,
                   MARGIN + 26, class_name);
        add_text(p, MARGIN + 34, y + 12, "small", text);
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
            y = add_legend_entry(p, y, path_class((enum topo_path)path), text, draw);
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
static int add_head(struct picture *p, const char *title, const char *words, bool draw)
{
    int y = MARGIN;
    if (draw)
        add_text(p, MARGIN, y + 14, "head", title);
    y += HEAD + 6;
    if (words[0])
        y = add_line(p, y, "small", words, draw);
    if (p->view->job && p->view->job->workers > 1)
        y = add_nodes(p, y + 4, draw);
    return add_legend(p, y, draw) + 8;
}

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
    add_head(p, title, words, true);
    for (size_t i = 0, end; i < p->count; i = end) {
        end = end_of_panel(p, i);
        add_panel(p, i, end);
    }
    for (size_t i = 0; i < view->link_count; i++)
        add_link(p, &view->links[i]);
    for (size_t i = 0; i < p->count; i++)
        add_box(p, &p->leaves[i]);
    if (view->fabric)
        add_fabric(p, below);
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
        job_words(view->job, &words);
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
        add_leaf(&p, i, TOPO_NONE);
    for (size_t i = 0; i < view->nic_count; i++)
        add_leaf(&p, TOPO_NONE, i);
    for (size_t i = 0; i < view->link_count; i++)
        p.used[view->links[i].path] = true;
    qsort(leaves, p.count, sizeof *leaves, order);
    place_all(&p, 0); /* for the width, which the head needs */
    widen(&p, title.data, 10);
    widen(&p, line, 6);
    int below, wide = LABEL_W + RAIL_W * (int)(view->fabric ? fabric_rail_count(view->fabric) : 0);
    p.width = view->fabric && p.width < 2 * MARGIN + wide ? 2 * MARGIN + wide : p.width;
    place_all(&p, add_head(&p, title.data, line, false));
    below = p.height;
    p.height += fabric_height(view);
    draw(&p, title.data, line, below);
}
