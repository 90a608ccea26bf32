/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "launcher/topo/svg_private.h"

/* The frame of level 0 is the host bridge, the next ones are switches. */
static void add_frame(struct picture *p, size_t first, size_t end, size_t level)
{
    const struct leaf *leaf = &p->leaves[first];
    char title[64], addr[PCI_ADDR_TEXT];
    int left = leaf->left, right = leaf->right;
    for (size_t i = first; i < end; i++)
        right = p->leaves[i].right > right ? p->leaves[i].right : right;
    int wider = svg_inset(p, level), y = leaf->py + HEAD + 8 + HEAD * (int)level;
    int bottom = leaf->py + svg_panel_height(p, leaf) - 6 - 6 * (int)level;
    if (level == 0) {
        snprintf(title, sizeof title, "%s%s", leaf->root[0] ? leaf->root : "host bridge not known",
                 leaf->root[0] && !leaf->chain_known ? " (switches not known)" : "");
    } else {
        pci_addr_format(leaf->switches[level - 1], addr);
        snprintf(title, sizeof title, "switch %s", addr);
    }
    left += leaf->px - wider;
    right += leaf->px + wider;
    svg_rect(p, left, y, right - left, bottom - y, level == 0 ? "root" : "switch");
    svg_fit(title, right - left - 10, 6);
    svg_text(p, left + 8, y + 14, "small", title);
}

static void add_frames(struct picture *p, size_t first, size_t end)
{
    for (size_t level = 0; level <= svg_deepest(p); level++)
        for (size_t i = first; i < end;) {
            size_t stop = i + 1;
            while (stop < end && svg_together(&p->leaves[i], &p->leaves[stop], level))
                stop++;
            if (p->leaves[i].depth >= level)
                add_frame(p, i, stop, level);
            i = stop;
        }
}

void svg_panel(struct picture *p, size_t first, size_t end)
{
    const struct topo_host *host = p->view->host;
    const struct leaf *leaf = &p->leaves[first];
    char title[300] = "NUMA node not known";
    int right = 0;
    for (size_t i = first; i < end; i++)
        right = p->leaves[i].right > right ? p->leaves[i].right : right;
    int width = right + MARGIN + svg_inset(p, 0);
    for (size_t i = 0; i < host->numa_count; i++)
        if (!host->partial && (int32_t)host->numas[i].id == leaf->numa)
            snprintf(title, sizeof title, "NUMA node %d: CPUs %.250s", leaf->numa,
                     host->numas[i].cpulist);
    if (leaf->numa >= 0 && strncmp(title, "NUMA node n", 11) == 0)
        snprintf(title, sizeof title, "NUMA node %d", leaf->numa);
    svg_rect(p, leaf->px, leaf->py, width, svg_panel_height(p, leaf), "numa");
    svg_fit(title, width - 16, 8);
    svg_text(p, leaf->px + 10, leaf->py + 19, "title", title);
    add_frames(p, first, end);
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
void svg_link(struct picture *p, const struct view_link *link)
{
    const struct leaf *gpu = leaf_of(p, link->gpu, TOPO_NONE);
    const struct leaf *nic = leaf_of(p, TOPO_NONE, link->nic);
    if (!gpu || !nic)
        return;
    int x1 = gpu->px + gpu->x + BOX_W / 2, y1 = gpu->py + gpu->y + BOX_H;
    int x2 = nic->px + nic->x + BOX_W / 2, y2 = nic->py + nic->y, middle = (y1 + y2) / 2;
    buf_printf(p->out, "<path d=\"M%d %dC%d %d %d %d %d %d\" class=\"link %s\"/>\n", x1, y1, x1,
               middle, x2, middle, x2, y2, svg_path_class(link->path));
    if (x1 == x2) /* beside a straight line there is room for its name */
        svg_text(p, x1 + 7, middle + 4, "small", topo_path_name(link->path));
}

void svg_box(struct picture *p, const struct leaf *leaf)
{
    const struct topo_view *view = p->view;
    char name[80], addr[PCI_ADDR_TEXT] = "no PCI address", line[64], rate[16];
    int x = leaf->px + leaf->x, y = leaf->py + leaf->y;
    const struct topo_pci *pci = svg_pci_of(p, leaf);
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
    svg_fit(name, BOX_W - 12, 8);
    svg_fit(line, BOX_W - 12, 7);
    svg_text(p, x + 8, y + 17, "name", name);
    svg_text(p, x + 8, y + 32, "small", addr);
    svg_text(p, x + 8, y + 46, line_class, line);
    if (!gpu && view->nic_states && view->nic_states[leaf->nic])
        svg_cell(p, x + BOX_W - CELL - 4, y + 4, view->nic_states[leaf->nic]);
}
