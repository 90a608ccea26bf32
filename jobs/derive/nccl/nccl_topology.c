/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/nccl/nccl_topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define PCI_GBS 48.0 /* PCIe gen5 x16, src/graph/topo.h */
#define CHANNELS 64u /* MAXCHANNELS */
#define NO_GPU UINT32_MAX

static const char *const names[NCCL_PATH_COUNT] = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                                   "PXB", "P2C", "PXN", "PHB", "SYS"};

struct path {
    enum nccl_path type;
    double bw;
    uint32_t relay; /* the GPU that a PXN path goes through */
};

/* to[g][n] and from[n][g] differ: PXN is for sending only. */
struct paths {
    const struct nccl_model *m;
    struct path to[NCCL_GPUS_MAX][NCCL_NICS_MAX];
    struct path from[NCCL_NICS_MAX][NCCL_GPUS_MAX];
};

struct locals {
    uint32_t list[NCCL_GPUS_MAX > NCCL_NICS_MAX ? NCCL_GPUS_MAX : NCCL_NICS_MAX];
    uint32_t count;
};

const char *nccl_path_name(enum nccl_path path)
{
    return path < NCCL_PATH_COUNT ? names[path] : "?";
}

const char *nccl_model_path_name(const struct nccl_model *model, size_t gpu, size_t nic,
                                 enum nccl_path path)
{
    bool direct = path == NCCL_PATH_PHB && model->classes[gpu][nic] == NCCL_PATH_PHB;
    return direct && !model->c2c && model->nodes[gpu][nic] ? "NODE" : nccl_path_name(path);
}

int nccl_level_parse(const char *text, uint32_t version)
{
    static const enum nccl_path old[] = {NCCL_PATH_LOC, NCCL_PATH_PIX, NCCL_PATH_PXB, NCCL_PATH_PHB,
                                         NCCL_PATH_SYS};
    for (int i = 0; i < NCCL_PATH_COUNT; i++)
        if (strcmp(text, names[i]) == 0)
            return (i == NCCL_PATH_C2C && version < NCCL_VERSION(2, 26, 0)) ||
                           (i == NCCL_PATH_P2C && version < NCCL_VERSION(2, 27, 0))
                       ? -1
                       : i;
    if (text[0] < '0' || text[0] > '9')
        return -1;
    unsigned long level = strtoul(text, NULL, 0);
    return (int)old[level < ARRAY_LEN(old) ? level : ARRAY_LEN(old) - 1];
}

uint32_t nccl_version_parse(const char *text)
{
    unsigned long part[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        char *end = NULL;
        if (text[0] < '0' || text[0] > '9')
            return 0;
        part[i] = strtoul(text, &end, 10);
        if (part[i] > 99)
            return 0;
        if (*end == '\0')
            return i == 0 ? 0 : (uint32_t)NCCL_VERSION(part[0], part[1], part[2]);
        if (*end != '.' && !(i == 2 && (*end == '-' || *end == '+')))
            return 0;
        text = end + 1;
    }
    return (uint32_t)NCCL_VERSION(part[0], part[1], part[2]);
}

/* ---- direct paths ---- */

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static struct path direct(const struct nccl_model *m, uint32_t g, uint32_t n, enum nccl_path type)
{
    double bw = min_double(PCI_GBS, m->nic_gbs[n]);
    (void)g;
    if (type == NCCL_PATH_SYS)
        bw = min_double(bw, m->inter_socket);
    return (struct path){type, bw, NO_GPU};
}

/* Both halves of a path that was sent through the GPU's own CPU. */
static enum nccl_path through_cpu(const struct nccl_model *m, uint32_t g, uint32_t n)
{
    if (m->classes[g][n] == NCCL_PATH_SYS)
        return NCCL_PATH_SYS;
    return m->c2c && m->version >= NCCL_VERSION(2, 27, 0) ? NCCL_PATH_P2C : NCCL_PATH_PHB;
}

static void set_direct(struct paths *p)
{
    for (uint32_t g = 0; g < p->m->gpus; g++)
        for (uint32_t n = 0; n < p->m->nics; n++) {
            p->to[g][n] = direct(p->m, g, n, p->m->classes[g][n]);
            p->from[n][g] = p->to[g][n];
        }
}

/* ---- what is local (ncclTopoGetLocal) ---- */

/* Highest bandwidth first, then the smaller type. */
static void take_local(struct locals *l, const struct path *best, const struct path *next,
                       uint32_t i, const struct path **ret_best)
{
    if (!best || next->bw > best->bw || (next->bw == best->bw && next->type < best->type)) {
        l->count = 0;
        best = next;
    }
    if (next->bw == best->bw && next->type == best->type)
        l->list[l->count++] = i;
    *ret_best = best;
}

static void local_nics(const struct paths *p, uint32_t g, struct locals *l)
{
    const struct path *best = NULL;
    l->count = 0;
    for (uint32_t n = 0; n < p->m->nics; n++)
        take_local(l, best, &p->to[g][n], n, &best);
}

static void local_gpus(const struct paths *p, uint32_t n, struct locals *l)
{
    const struct path *best = NULL;
    l->count = 0;
    for (uint32_t g = 0; g < p->m->gpus; g++)
        take_local(l, best, &p->from[n][g], g, &best);
}

static uint32_t mirror_bits(uint32_t value, uint32_t pow2)
{
    uint32_t mirror = 0;
    for (uint32_t b = 1, mb = pow2 >> 1; b < pow2; b <<= 1, mb >>= 1)
        if (value & b)
            mirror |= mb;
    return mirror;
}

static uint32_t nics_per_gpu(const struct nccl_model *m, uint32_t nics, uint32_t gpus)
{
    if (m->policy == NCCL_DEVS_ALL)
        return nics;
    if (m->policy == NCCL_DEVS_MAX && m->policy_max > 0)
        return m->policy_max < nics ? m->policy_max : nics;
    return (nics + gpus - 1) / gpus;
}

/* ncclTopoGetLocalNet for every channel at once: the NICs in rotation, returns how many. */
static uint32_t rotation(const struct paths *p, uint32_t g, uint32_t *nics)
{
    struct locals ln, lg;
    local_nics(p, g, &ln);
    local_gpus(p, ln.list[0], &lg);
    assert(ln.count > 0 && lg.count > 0);
    uint32_t per_gpu = nics_per_gpu(p->m, ln.count, lg.count), start = p->m->nvml[g];
    if (p->m->version >= NCCL_VERSION(2, 30, 7)) /* not yet in 2.30.4 */
        start %= lg.count;
    if ((ln.count & (ln.count - 1)) == 0)
        start = mirror_bits(start, ln.count);
    for (uint32_t c = 0; c < per_gpu; c++)
        nics[c] = ln.list[(start + c) % ln.count];
    return per_gpu;
}

/* ncclTopoGetLocalGpu: the first local GPU, channel by channel, that has n in its rotation. */
static uint32_t local_gpu(const struct paths *p, uint32_t n)
{
    struct locals lg;
    uint32_t nics[NCCL_GPUS_MAX][NCCL_NICS_MAX], count[NCCL_GPUS_MAX];
    local_gpus(p, n, &lg);
    for (uint32_t i = 0; i < lg.count; i++) {
        count[i] = rotation(p, lg.list[i], nics[i]);
        assert(count[i] > 0);
    }
    for (uint32_t c = 0; c < CHANNELS; c++)
        for (uint32_t i = 0; i < lg.count; i++)
            if (nics[i][c % count[i]] == n)
                return lg.list[i];
    return NO_GPU;
}

/* ---- GPUDirect RDMA (ncclTopoCheckGdr) ---- */

bool nccl_model_c2c(const struct nccl_model *m)
{
    if (m->gdr_c2c >= 0)
        return m->gdr_c2c != 0;
    return m->version >= NCCL_VERSION(2, 27, 0);
}

static bool gdr_on(const struct paths *p, uint32_t g, uint32_t n)
{
    const struct nccl_model *m = p->m;
    const struct path *path = &p->to[g][n];
    if (!m->gdr)
        return false;
    if (path->type == NCCL_PATH_PXN)
        path = &p->to[path->relay][n];
    bool new_level = m->version >= NCCL_VERSION(2, 29, 2);
    int level = new_level && nccl_model_c2c(m) ? NCCL_PATH_P2C : NCCL_PATH_PXB;
    int distance = path->type;
    if (m->gdr_level >= 0)
        level = m->gdr_level;
    bool c2c_path = m->version >= NCCL_VERSION(2, 27, 0) ? distance == NCCL_PATH_P2C
                                                         : m->c2c && distance == NCCL_PATH_PHB;
    if (c2c_path && nccl_model_c2c(m) && !new_level)
        distance = NCCL_PATH_C2C;
    return distance <= level;
}

/* ---- updates of the direct paths ---- */

/* P2C is only for the NICs that are a GPU's local ones already. */
static void mark_c2c(struct paths *p)
{
    if (!p->m->c2c || p->m->version < NCCL_VERSION(2, 27, 0))
        return;
    for (uint32_t g = 0; g < p->m->gpus; g++) {
        struct locals l;
        local_nics(p, g, &l);
        for (uint32_t i = 0; i < l.count; i++) {
            uint32_t n = l.list[i];
            if (p->m->classes[g][n] != NCCL_PATH_PHB)
                continue;
            p->to[g][n].type = NCCL_PATH_P2C;
            p->from[n][g].type = NCCL_PATH_P2C;
        }
    }
}

static enum nccl_path pxn_limit(const struct nccl_model *m)
{
    bool c2c = m->pxn_c2c >= 0 ? m->pxn_c2c != 0 : m->version >= NCCL_VERSION(2, 28, 0);
    return c2c && m->version >= NCCL_VERSION(2, 27, 0) ? NCCL_PATH_P2C : NCCL_PATH_PXB;
}

static void try_pxn(struct paths *p, uint32_t g, uint32_t n)
{
    const struct nccl_model *m = p->m;
    uint32_t relay = m->pxn && m->nvlink ? local_gpu(p, n) : NO_GPU;
    if (relay == NO_GPU || relay == g)
        return;
    const struct path *peer = &p->to[relay][n], *mine = &p->to[g][n];
    enum nccl_path far = m->version >= NCCL_VERSION(2, 27, 7) ? NCCL_PATH_PXN : NCCL_PATH_PXB;
    if (peer->type > pxn_limit(m) || (peer->bw <= mine->bw && mine->type <= far))
        return;
    if (m->version >= NCCL_VERSION(2, 30, 0) && !gdr_on(p, relay, n))
        return;
    p->to[g][n] = (struct path){NCCL_PATH_PXN, peer->bw, relay};
}

static void divert_without_gdr(struct paths *p, uint32_t g, uint32_t n)
{
    if (p->to[g][n].type >= NCCL_PATH_PHB || gdr_on(p, g, n))
        return;
    p->to[g][n] = direct(p->m, g, n, through_cpu(p->m, g, n));
    p->from[n][g] = p->to[g][n];
}

void nccl_model_run(const struct nccl_model *model, struct nccl_result *ret_result)
{
    struct paths p = {.m = model};
    memset(ret_result, 0, sizeof *ret_result);
    if (model->nics == 0)
        return;
    set_direct(&p);
    mark_c2c(&p);
    for (uint32_t n = 0; n < model->nics; n++)
        for (uint32_t g = 0; g < model->gpus; g++) {
            try_pxn(&p, g, n);
            divert_without_gdr(&p, g, n);
        }
    for (uint32_t g = 0; g < model->gpus; g++) {
        uint32_t nics[NCCL_NICS_MAX];
        ret_result->count[g] = (uint8_t)rotation(&p, g, nics);
        for (uint32_t i = 0; i < ret_result->count[g]; i++)
            ret_result->use[g][i] = (struct nccl_use){
                (uint8_t)nics[i], (uint8_t)p.to[g][nics[i]].type, gdr_on(&p, g, nics[i])};
    }
}
