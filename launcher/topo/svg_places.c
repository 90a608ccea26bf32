/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "launcher/topo/svg_private.h"

const struct topo_pci *svg_pci_of(const struct picture *p, const struct leaf *leaf)
{
    const struct topo_view *view = p->view;
    size_t index =
        leaf->gpu != TOPO_NONE ? view->host->gpus[leaf->gpu].pci : view->nics[leaf->nic].pci;
    return index == TOPO_NONE ? NULL : &view->host->pci[index];
}

/* ---- order ---- */

void svg_add_leaf(struct picture *p, size_t gpu, size_t nic)
{
    struct leaf *leaf = &p->leaves[p->count++];
    *leaf = (struct leaf){.gpu = gpu, .nic = nic, .numa = -1, .root = ""};
    const struct topo_pci *pci = svg_pci_of(p, leaf);
    if (!pci)
        return;
    leaf->numa = host_numa_of(p->view->host, (size_t)(pci - p->view->host->pci));
    leaf->root = pci->place.root;
    leaf->chain_known = pci->place.chain_known;
    leaf->depth = view_switches(&pci->place, leaf->switches, DEPTH_MAX);
}

/* Whether two leaves share their first `level` switches, and the root. */
bool svg_together(const struct leaf *a, const struct leaf *b, size_t level)
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
    return a->depth == b->depth && svg_together(a, b, a->depth);
}

int svg_order(const void *a, const void *b)
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

size_t svg_end_of_panel(const struct picture *p, size_t first)
{
    size_t end = first + 1;
    while (end < p->count && p->leaves[end].numa == p->leaves[first].numa)
        end++;
    return end;
}

size_t svg_deepest(const struct picture *p)
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
    return HEAD + 8 + HEAD * (1 + (int)svg_deepest(p)) + 8;
}

int svg_panel_height(const struct picture *p, const struct leaf *leaf)
{
    return top_of_rows(p) + 2 * BOX_H + leaf->corridor + 8 * (2 + (int)svg_deepest(p));
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
int svg_inset(const struct picture *p, size_t level)
{
    return 5 * (int)(svg_deepest(p) - level);
}

/* Room for the frames that end and begin between two groups. */
static int gap_between(const struct picture *p, const struct leaf *a, const struct leaf *b)
{
    size_t level = 0;
    while (level < svg_deepest(p) && svg_together(a, b, level))
        level++;
    return GAP + 2 * svg_inset(p, level);
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
    int x = MARGIN + svg_inset(p, 0);
    for (size_t i = first; i < end;) {
        size_t stop = i + 1;
        while (stop < end && same_group(&p->leaves[i], &p->leaves[stop]))
            stop++;
        if (i > first)
            x += gap_between(p, &p->leaves[i - 1], &p->leaves[i]);
        x = place_group(p, i, stop, x);
        i = stop;
    }
    return x + MARGIN + svg_inset(p, 0);
}

static void move_panel(struct picture *p, size_t first, size_t end, int px, int py)
{
    for (size_t i = first; i < end; i++) {
        p->leaves[i].px = px;
        p->leaves[i].py = py;
    }
}

/* Panels in rows, as many beside each other as fit, from y on. */
void svg_place_all(struct picture *p, int y)
{
    int x = MARGIN, tallest = 0;
    for (size_t i = 0; i < p->count;) {
        size_t end = svg_end_of_panel(p, i);
        int width = place_panel(p, i, end);
        if (x > MARGIN && x + width > WIDE) {
            x = MARGIN;
            y += tallest + MARGIN;
            tallest = 0;
        }
        int height = svg_panel_height(p, &p->leaves[i]);
        tallest = height > tallest ? height : tallest;
        move_panel(p, i, end, x, y);
        x += width + MARGIN;
        if (x > p->width)
            p->width = x;
        i = end;
    }
    p->height = y + (p->count ? tallest + MARGIN : 0);
}
