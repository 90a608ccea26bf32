/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/topo/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/pairing/pairing.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* ---- NICs ---- */

static void add_rdma(struct topo_view *view, const struct topo_rdma *rdma)
{
    uint32_t mbps = 0;
    for (size_t i = 0; i < rdma->port_count; i++)
        if (rdma->ports[i].active != TOPO_NO)
            mbps += rdma->ports[i].rate_mbps;
    view->nics[view->nic_count++] = (struct view_nic){
        .name = rdma->name,
        .pci = rdma->pci,
        .rdma = rdma,
        .net = host_netdev_of(view->host, rdma),
        .mbps = mbps,
        .usable = rdma->usable,
        .data = {.name = rdma->name,
                 .ports = rdma->ports,
                 .port_count = rdma->port_count,
                 .usable = rdma->usable,
                 .uplink = host_uplink_of(view->host, rdma)},
    };
}

static void add_netdev(struct topo_view *view, const struct topo_netdev *net)
{
    if (net->pci == TOPO_NONE || net->representor || net->partition_of[0])
        return;
    view->nics[view->nic_count++] = (struct view_nic){
        .name = net->name,
        .pci = net->pci,
        .net = net,
        .mbps = net->speed_mbps,
        .usable = TOPO_YES,
        .data = {.name = net->name, .uplink = net->uplink[0] ? net->uplink : NULL},
        .net_port = {.number = 1, .rate_mbps = net->speed_mbps},
    };
}

/* In the order of addresses, which sorting has made. */
static void choose_nics(struct topo_view *view, struct data_nic *all)
{
    for (size_t i = 0; i < view->nic_count; i++) {
        struct view_nic *nic = &view->nics[i];
        if (!nic->rdma) {
            nic->data.ports = &nic->net_port;
            nic->data.port_count = 1;
        }
        all[i] = nic->data;
    }
    data_nics_choose(all, view->nic_count);
    for (size_t i = 0; i < view->nic_count; i++)
        view->nics[i].data = all[i];
}

static int by_address(const void *a, const void *b)
{
    const struct view_nic *x = a, *y = b;
    if (x->pci != y->pci)
        return x->pci < y->pci ? -1 : 1;
    return strverscmp(x->name, y->name);
}

static void add_nics(struct topo_view *view)
{
    const struct topo_host *host = view->host;
    for (size_t i = 0; i < host->rdma_count; i++)
        add_rdma(view, &host->rdmas[i]);
    for (size_t i = 0; host->rdma_count == 0 && host->gpu_count > 0 && i < host->netdev_count; i++)
        add_netdev(view, &host->netdevs[i]);
    if (view->nic_count > 1)
        qsort(view->nics, view->nic_count, sizeof *view->nics, by_address);
}

/* ---- pairing ---- */

struct pairing {
    struct topo_view *view;
    size_t *loads;        /* NICs of each GPU, then GPUs of each NIC */
    enum topo_path *best; /* of each GPU's first link */
};

static void link_up(struct pairing *p, size_t gpu, size_t nic, enum topo_path path)
{
    size_t gpus = p->view->host->gpu_count;
    p->view->links[p->view->link_count++] = (struct view_link){gpu, nic, path};
    if (p->loads[gpu] == 0)
        p->best[gpu] = path;
    p->loads[gpu]++;
    p->loads[gpus + nic]++;
}

static bool joins(const struct topo_view *view, size_t gpu, size_t nic)
{
    return view->host->gpus[gpu].usable != TOPO_NO && view->nics[nic].data.use == NIC_USE_DATA;
}

/* Those that may be paired: usable GPUs, and NICs that carry data. */
struct candidates {
    size_t gpus[PAIRING_MAX], nics[PAIRING_MAX];
    uint32_t gpu_count, nic_count;
};

static void find_candidates(const struct topo_view *view, struct candidates *c)
{
    c->gpu_count = c->nic_count = 0;
    for (size_t g = 0; g < view->host->gpu_count && c->gpu_count < PAIRING_MAX; g++)
        if (view->host->gpus[g].usable != TOPO_NO)
            c->gpus[c->gpu_count++] = g;
    for (size_t n = 0; n < view->nic_count && c->nic_count < PAIRING_MAX; n++)
        if (view->nics[n].data.use == NIC_USE_DATA)
            c->nics[c->nic_count++] = n;
}

static uint8_t class_of(enum topo_path path)
{
    switch (path) {
    case TOPO_PATH_PIX:
        return 0;
    case TOPO_PATH_PXB:
    case TOPO_PATH_ROOT: /* slices tell no more */
        return 1;
    case TOPO_PATH_P2C:
    case TOPO_PATH_PHB:
        return 2;
    case TOPO_PATH_NODE:
        return 3;
    case TOPO_PATH_SYS:
        return 4;
    default:
        return 5;
    }
}

/* The best assignment (jobs/derive/pairing/pairing.h). Where there are several times as many NICs
 * as GPUs, each GPU is several rows, which gives it neighbours, as NCCL does (ncclTopoGetLocalNet).
 * What is farther than the GPU's nearest is left for others. */
static void pair_best(struct pairing *p)
{
    struct candidates c;
    uint8_t classes[PAIRING_MAX][PAIRING_MAX];
    uint32_t columns[PAIRING_MAX];
    find_candidates(p->view, &c);
    if (c.gpu_count == 0 || c.nic_count == 0)
        return;
    uint32_t each = c.nic_count > c.gpu_count ? c.nic_count / c.gpu_count : 1;
    uint32_t rows = c.gpu_count * each;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t n = 0; n < c.nic_count; n++)
            classes[r][n] = class_of(view_path(p->view, c.gpus[r / each], c.nics[n]));
    pairing_assign(rows, c.nic_count, classes, columns);
    for (uint32_t g = 0; g < c.gpu_count; g++) {
        uint8_t best = class_of(TOPO_PATH_UNKNOWN);
        for (uint32_t r = g * each; r < (g + 1) * each; r++)
            if (columns[r] != PAIRING_NONE && classes[r][columns[r]] < best)
                best = classes[r][columns[r]];
        for (uint32_t r = g * each; r < (g + 1) * each; r++)
            if (columns[r] != PAIRING_NONE && classes[r][columns[r]] == best &&
                best < class_of(TOPO_PATH_UNKNOWN))
                link_up(p, c.gpus[g], c.nics[columns[r]],
                        view_path(p->view, c.gpus[g], c.nics[columns[r]]));
    }
}

/* A GPU that got none shares the nearest NIC with the fewest GPUs. */
static void share_nic(struct pairing *p, size_t gpu)
{
    struct topo_view *view = p->view;
    size_t gpus = view->host->gpu_count, best = TOPO_NONE;
    enum topo_path best_path = TOPO_PATH_UNKNOWN;
    for (size_t n = 0; n < view->nic_count; n++) {
        enum topo_path path = view_path(view, gpu, n);
        if (!joins(view, gpu, n) || path == TOPO_PATH_UNKNOWN)
            continue;
        if (best == TOPO_NONE || path < best_path ||
            (path == best_path && p->loads[gpus + n] < p->loads[gpus + best])) {
            best = n;
            best_path = path;
        }
    }
    if (best != TOPO_NONE)
        link_up(p, gpu, best, best_path);
}

/* A NIC left over joins the GPU with the fewest among those that it is as near to as their own. */
static void join_gpu(struct pairing *p, size_t nic)
{
    struct topo_view *view = p->view;
    size_t best = TOPO_NONE;
    for (size_t g = 0; g < view->host->gpu_count; g++)
        if (joins(view, g, nic) && p->loads[g] > 0 && view_path(view, g, nic) == p->best[g] &&
            p->best[g] != TOPO_PATH_SYS && (best == TOPO_NONE || p->loads[g] < p->loads[best]))
            best = g;
    if (best != TOPO_NONE)
        link_up(p, best, nic, p->best[best]);
}

static int by_gpu(const void *a, const void *b)
{
    const struct view_link *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return x->nic < y->nic ? -1 : x->nic > y->nic;
}

static void pair(struct pairing *p)
{
    struct topo_view *view = p->view;
    size_t gpus = view->host->gpu_count;
    pair_best(p);
    for (size_t g = 0; g < gpus; g++)
        if (p->loads[g] == 0)
            share_nic(p, g);
    for (size_t n = 0; n < view->nic_count; n++)
        if (p->loads[gpus + n] == 0)
            join_gpu(p, n);
    if (view->link_count > 1)
        qsort(view->links, view->link_count, sizeof *view->links, by_gpu);
}

/* ---- the view ---- */

int topo_view_make(const struct topo_host *host, struct topo_view *ret_view,
                   struct drarun_error *err)
{
    size_t nics = host->rdma_count + host->netdev_count + 1, all = nics + host->gpu_count;
    struct topo_view view = {.host = host};
    cleanup_free size_t *loads = calloc(all, sizeof *loads);
    cleanup_free enum topo_path *best = calloc(all, sizeof *best);
    cleanup_free struct data_nic *chosen = calloc(nics, sizeof *chosen);
    view.nics = calloc(nics, sizeof *view.nics);
    view.links = calloc(all, sizeof *view.links);
    if (!loads || !best || !chosen || !view.nics || !view.links) {
        topo_view_done(&view);
        return error_set(err, ENOMEM, "out of memory");
    }
    add_nics(&view);
    choose_nics(&view, chosen);
    pair(&(struct pairing){&view, loads, best});
    *ret_view = view;
    return 0;
}

void topo_view_done(struct topo_view *view)
{
    free(view->nics);
    free(view->links);
    *view = (struct topo_view){0};
}

enum topo_path view_path(const struct topo_view *view, size_t gpu, size_t nic)
{
    const struct topo_host *host = view->host;
    return host_path(host, host->gpus[gpu].pci, view->nics[nic].pci, host->c2c == TOPO_YES);
}

bool view_claimed_known(const struct topo_view *view)
{
    bool given = false, withheld = false;
    for (size_t i = 0; i < view->host->gpu_count; i++) {
        given |= view->host->gpus[i].usable == TOPO_YES;
        withheld |= view->host->gpus[i].usable == TOPO_NO;
    }
    for (size_t i = 0; i < view->nic_count; i++) {
        given |= view->nics[i].rdma && view->nics[i].usable == TOPO_YES;
        withheld |= view->nics[i].usable == TOPO_NO;
    }
    return given && withheld;
}

const char *view_gpu_name(const struct topo_gpu *gpu)
{
    return gpu->product ? gpu->product : gpu->vendor;
}

void view_rate(uint32_t mbps, char text[16])
{
    if (mbps == 0)
        snprintf(text, 16, "?");
    else
        snprintf(text, 16, "%gG", mbps / 1000.0);
}

const struct topo_port *view_port(const struct view_nic *nic)
{
    const struct topo_port *port = data_nic_port(&nic->data);
    if (!nic->rdma)
        return NULL;
    return port || nic->rdma->port_count == 0 ? port : &nic->rdma->ports[0];
}

const char *view_link_words(const struct view_nic *nic)
{
    if (!nic->rdma)
        return "no RDMA";
    const struct topo_port *port = view_port(nic);
    if (!port)
        return "no port seen";
    switch (port->link) {
    case TOPO_LINK_ETHERNET:
        return "RoCE";
    case TOPO_LINK_IB:
        return "InfiniBand";
    default:
        return "RDMA";
    }
}

size_t view_switches(const struct pci_place *place, struct pci_addr *ret_switches, size_t max)
{
    /* from the root: root port, upstream port, downstream port, upstream port, ... */
    size_t count = 0;
    for (size_t up = 1; up + 1 < place->bridge_count && count < max; up += 2)
        ret_switches[count++] = place->bridges[place->bridge_count - 1 - up];
    return count;
}
