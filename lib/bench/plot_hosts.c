/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, in each its ranks with their GPUs in rows of eight, below them the NICs that the job had,
 * and lines between a GPU and the NIC that is its own. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/plot_private.h"

#define HOSTS_MAX 32u
#define RANKS_MAX 64u /* of a host */
#define NICS_MAX 64u
#define PER_LINE 8u
#define CHIP_W 98 /* with the gap to the next one */
#define CHIP_H 40
#define NIC_H 24
#define CORRIDOR 30 /* between the rows: lines alone */
#define HEAD 28
#define LEGEND 26

struct nic {
    char name[48];
    unsigned line, column; /* where it stands; line at or above lines: nowhere */
};

struct host {
    size_t first; /* rank, which names it */
    size_t ranks[RANKS_MAX];
    size_t count;
    struct nic nics[NICS_MAX];
    size_t nic_count;
    double y;
};

struct picture {
    const struct result *result;
    const struct plot_slowness *slowness;
    struct host *hosts;
    size_t count;
    bool linked; /* a GPU and its NIC are known somewhere */
    struct buf *out;
};

/* ---- who is where ---- */

static struct host *host_of(struct picture *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->result->ranks[p->hosts[i].first].host, name) == 0)
            return &p->hosts[i];
    return NULL;
}

static struct nic *find_nic(struct host *host, const char *name)
{
    for (size_t i = 0; i < host->nic_count; i++)
        if (strcmp(host->nics[i].name, name) == 0)
            return &host->nics[i];
    return NULL;
}

static unsigned lines_of(const struct host *host)
{
    return (unsigned)((host->count + PER_LINE - 1) / PER_LINE);
}

static void add_nics(struct host *host, const char *list)
{
    char names[RESULT_NICS], *rest = NULL;
    snprintf(names, sizeof names, "%s", list);
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (host->nic_count == NICS_MAX || find_nic(host, name))
            continue;
        struct nic *nic = &host->nics[host->nic_count++];
        snprintf(nic->name, sizeof nic->name, "%s", name);
        nic->line = UINT32_MAX;
    }
}

/* False: more hosts or ranks than a picture holds. */
static bool gather(struct picture *p)
{
    const struct result *r = p->result;
    for (size_t i = 0; i < r->rank_count; i++) {
        struct host *host = r->ranks[i].host[0] ? host_of(p, r->ranks[i].host) : NULL;
        if (!r->ranks[i].host[0])
            continue;
        if (!host && p->count == HOSTS_MAX)
            return false;
        if (!host) {
            host = &p->hosts[p->count++];
            host->first = i;
        }
        if (host->count == RANKS_MAX)
            return false;
        host->ranks[host->count++] = i;
        add_nics(host, r->ranks[i].nic);
        add_nics(host, r->ranks[i].nearest);
    }
    return p->count > 0;
}

static bool is_free(const struct host *host, unsigned line, unsigned column)
{
    for (size_t i = 0; i < host->nic_count; i++)
        if (host->nics[i].line == line && host->nics[i].column == column)
            return false;
    return true;
}

/* In that column or the next free one of the line. */
static bool place_in_line(struct host *host, struct nic *nic, unsigned line, unsigned column)
{
    for (unsigned i = 0; i < PER_LINE; i++) {
        unsigned at = (column + i) % PER_LINE;
        if (!is_free(host, line, at))
            continue;
        nic->line = line;
        nic->column = at;
        return true;
    }
    return false;
}

/* Below the first rank whose own it is; the others where there is room. */
static void place_nics(struct picture *p, struct host *host)
{
    for (unsigned k = 0; k < host->count; k++) {
        char names[RESULT_NICS], *rest = NULL;
        snprintf(names, sizeof names, "%s", result_own_nics(&p->result->ranks[host->ranks[k]]));
        for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
            struct nic *nic = find_nic(host, name);
            p->linked = p->linked || nic;
            if (nic && nic->line == UINT32_MAX)
                place_in_line(host, nic, k / PER_LINE, k % PER_LINE);
        }
    }
    for (size_t i = 0; i < host->nic_count; i++)
        for (unsigned line = 0; line < lines_of(host) && host->nics[i].line == UINT32_MAX; line++)
            place_in_line(host, &host->nics[i], line, 0);
}

/* ---- drawing ---- */

static double line_height(const struct host *host)
{
    return CHIP_H + 8 + (host->nic_count ? CORRIDOR + NIC_H : 0);
}

static double host_height(const struct host *host)
{
    return HEAD + lines_of(host) * line_height(host) + 4;
}

static double x_of(unsigned column)
{
    return 22 + column * (CHIP_W + 4.0);
}

static double y_of(const struct host *host, unsigned line)
{
    return host->y + HEAD + line * line_height(host);
}

static const char *colour_of(const char *path)
{
    return strcmp(path, "PIX") == 0 || strcmp(path, "SELF") == 0   ? "seen"
           : strcmp(path, "PXB") == 0 || strcmp(path, "P2C") == 0  ? "one"
           : strcmp(path, "SYS") == 0                              ? "limit"
           : strcmp(path, "PHB") == 0 || strcmp(path, "NODE") == 0 ? "two"
                                                                   : "faint";
}

static void draw_rank(const struct picture *p, const struct host *host, unsigned k)
{
    const struct result *r = p->result;
    size_t rank = host->ranks[k];
    const struct result_rank *of = &r->ranks[rank];
    double x = x_of(k % PER_LINE), y = y_of(host, k / PER_LINE);
    bool slow = p->slowness[rank].percent > 5 || probed_is_slow(&r->probed, (int)of->rank);
    char text[160], numa[24] = "";
    if (of->numa >= 0)
        snprintf(numa, sizeof numa, ", NUMA node %d", of->numa);
    buf_printf(p->out,
               "<rect class=\"f-paper s-%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" "
               "rx=\"4\" stroke-width=\"%d\"><title>",
               slow ? "limit" : "grid", x, y, CHIP_W - 6, CHIP_H, slow ? 2 : 1);
    snprintf(text, sizeof text, "%.60s %s%s%s%s", of->model, of->address, numa,
             of->path[0] ? ", to its NIC: " : "", of->path);
    plot_text(text, p->out);
    buf_add_str(p->out, "</title></rect>\n");
    snprintf(text, sizeof text, "rank %u", of->rank);
    plot_label(p->out, slow ? "limit" : "ink", x + 6, y + 15, "start", 11, text);
    snprintf(text, sizeof text, "%.13s", of->address);
    plot_label(p->out, "faint", x + 6, y + 31, "start", 11, text);
}

static bool is_slow(const struct picture *p, const struct host *host, const struct nic *nic)
{
    const struct probed *probed = &p->result->probed;
    for (size_t i = 0; i < probed->slow_count; i++) {
        const struct probed_slow *slow = &probed->slow[i];
        if (slow->kind == PROBED_NIC && strcmp(slow->at.nic, nic->name) == 0 &&
            strcmp(slow->at.host, p->result->ranks[host->first].host) == 0)
            return true;
    }
    return false;
}

static void draw_nic(const struct picture *p, const struct host *host, const struct nic *nic)
{
    bool slow = is_slow(p, host, nic);
    double x = x_of(nic->column), y = y_of(host, nic->line) + CHIP_H + CORRIDOR;
    char text[24];
    buf_printf(p->out,
               "<rect class=\"f-paper s-%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" "
               "rx=\"12\" stroke-width=\"%d\"><title>",
               slow ? "limit" : "grid", x, y, CHIP_W - 6, NIC_H, slow ? 2 : 1);
    plot_text(nic->name, p->out);
    buf_add_str(p->out, "</title></rect>\n");
    snprintf(text, sizeof text, "%.13s", nic->name);
    plot_label(p->out, "ink", x + (CHIP_W - 6) / 2.0, y + 16, "middle", 11, text);
}

static void draw_links(const struct picture *p, struct host *host, unsigned k)
{
    const struct result_rank *of = &p->result->ranks[host->ranks[k]];
    char names[RESULT_NICS], *rest = NULL;
    double middle = (CHIP_W - 6) / 2.0;
    double x1 = x_of(k % PER_LINE) + middle, y1 = y_of(host, k / PER_LINE) + CHIP_H;
    snprintf(names, sizeof names, "%s", result_own_nics(of));
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const struct nic *nic = find_nic(host, name);
        if (!nic || nic->line != k / PER_LINE)
            continue;
        double x2 = x_of(nic->column) + middle, y2 = y_of(host, nic->line) + CHIP_H + CORRIDOR;
        plot_stroke(p->out, colour_of(of->path), x1, y1, x2, y2, "stroke-width=\"2.5\"");
        if (x1 == x2 && of->path[0]) /* beside a straight line there is room for its name */
            plot_label(p->out, "faint", x1 + 5, (y1 + y2) / 2 + 4, "start", 10, of->path);
    }
}

static void draw_head(const struct picture *p, const struct host *host)
{
    const struct result_rank *first = &p->result->ranks[host->first];
    char text[280];
    bool slow = probed_host_is_slow(&p->result->probed, first->host);
    size_t hidden = 0;
    for (size_t i = 0; i < host->nic_count; i++)
        hidden += host->nics[i].line == UINT32_MAX;
    buf_printf(p->out,
               "<rect class=\"f-box s-%s\" x=\"10\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
               "rx=\"6\"/>\n",
               slow ? "limit" : "grid", host->y, PLOT_WIDTH - 20, host_height(host));
    bool named = first->node[0] && strcmp(first->node, first->host) != 0;
    snprintf(text, sizeof text, "%s%s%s", named ? first->node : first->host, named ? ": " : "",
             named ? first->host : "");
    plot_label(p->out, "ink", 22, host->y + 18, "start", 13, text);
    if (hidden)
        snprintf(text, sizeof text, "%s, and %zu more NICs", first->model, hidden);
    else
        snprintf(text, sizeof text, "%s", first->model);
    plot_label(p->out, "faint", PLOT_WIDTH - 22, host->y + 18, "end", 12, text);
}

static void draw_host(const struct picture *p, struct host *host)
{
    draw_head(p, host);
    for (unsigned k = 0; k < host->count; k++)
        draw_links(p, host, k);
    for (unsigned k = 0; k < host->count; k++)
        draw_rank(p, host, k);
    for (size_t i = 0; i < host->nic_count; i++)
        if (host->nics[i].line < lines_of(host))
            draw_nic(p, host, &host->nics[i]);
}

static void draw_legend(const struct picture *p)
{
    static const struct {
        const char *path, *text;
        int width;
    } entries[] = {{"PIX", "PIX: one PCIe switch", 152},
                   {"PXB", "PXB, P2C: several", 136},
                   {"PHB", "PHB, NODE: through the CPU", 192},
                   {"SYS", "SYS: between sockets", 150}};
    int x = 22;
    for (size_t i = 0; p->linked && i < ARRAY_LEN(entries); i++) {
        plot_stroke(p->out, colour_of(entries[i].path), x, 16, x + 22, 16, "stroke-width=\"2.5\"");
        plot_label(p->out, "faint", x + 28, 20, "start", 11, entries[i].text);
        x += 34 + entries[i].width;
    }
}

static void draw(struct picture *p, enum plot_theme theme)
{
    double y = 10;
    for (size_t i = 0; i < p->count; i++)
        place_nics(p, &p->hosts[i]);
    y += p->linked ? LEGEND : 0;
    for (size_t i = 0; i < p->count; i++) {
        p->hosts[i].y = y;
        y += host_height(&p->hosts[i]) + 10;
    }
    plot_begin(PLOT_WIDTH, (int)y, "hosts, ranks and their devices", theme, p->out);
    draw_legend(p);
    for (size_t i = 0; i < p->count; i++)
        draw_host(p, &p->hosts[i]);
    buf_add_str(p->out, "</svg>\n");
}

bool plot_hosts(const struct result *r, enum plot_theme theme, struct buf *out)
{
    cleanup_free struct plot_slowness *list = calloc(r->rank_count + 1, sizeof *list);
    cleanup_free double *room = calloc(r->rank_count + 1, sizeof *room);
    cleanup_free struct host *hosts = calloc(HOSTS_MAX, sizeof *hosts);
    struct picture p = {.result = r, .slowness = list, .hosts = hosts, .out = out};
    if (!list || !room || !hosts || !gather(&p))
        return false;
    plot_slowness(r, list, room);
    draw(&p, theme);
    return true;
}
