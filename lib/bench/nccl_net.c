/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/nccl_net.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/span.h"

static bool is_one(struct span word, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_is(word, names[i]))
            return true;
    return false;
}

/* ---- layers ---- */

static void see(struct nccl_layer *layer, enum nccl_net_kind kind, struct span words)
{
    bool first = !layer->words[0], was_rdma = layer->rdma && !layer->tcp && !layer->other;
    layer->rdma = layer->rdma || kind == NCCL_NET_RDMA;
    layer->tcp = layer->tcp || kind == NCCL_NET_TCP;
    layer->other = layer->other || kind == NCCL_NET_UNPROVEN;
    if (!first && !(was_rdma && kind != NCCL_NET_RDMA))
        return;
    span_copy(words, "", layer->words, sizeof layer->words);
}

static enum nccl_net_kind layer_kind(const struct nccl_layer *layer)
{
    if (layer->rdma && !layer->tcp && !layer->other)
        return NCCL_NET_RDMA;
    return layer->tcp && !layer->rdma && !layer->other ? NCCL_NET_TCP : NCCL_NET_UNPROVEN;
}

/* ---- libfabric ---- */

/* Of a provider that others are layered on, "verbs;ofi_rxm", the first is the wire's. */
static enum nccl_net_kind provider_kind(struct span provider)
{
    static const char *const rdma[] = {"efa", "verbs", "cxi", "gni"};
    static const char *const sockets[] = {"tcp", "sockets", "udp"};
    const char *layer = memchr(provider.at, ';', (size_t)(provider.end - provider.at));
    struct span core = {provider.at, layer ? layer : provider.end};
    return is_one(core, rdma, ARRAY_LEN(rdma))         ? NCCL_NET_RDMA
           : is_one(core, sockets, ARRAY_LEN(sockets)) ? NCCL_NET_TCP
                                                       : NCCL_NET_UNPROVEN;
}

/* What was chosen, or the only one that may be: without it the plugin has no connections. */
static void take_provider(struct nccl_layers *layers, struct span line)
{
    static const char *const words[] = {"Selected provider is ", "Selected Provider is ",
                                        "Setting provider_filter to ", "FI_PROVIDER="};
    const char *at = NULL;
    size_t i = 0;
    for (; !at && i < ARRAY_LEN(words); i++)
        at = span_after(line, words[i]);
    if (!at)
        return;
    bool is_variable = i == ARRAY_LEN(words);
    if (is_variable && at < line.end && (*at == '"' || *at == '\''))
        at++;
    struct span provider = {at, at};
    while (provider.end < line.end && !strchr(" (\t\r\033\"'", *provider.end) && *provider.end)
        provider.end++;
    bool is_choice = is_variable && memchr(at, ',', (size_t)(provider.end - at));
    if (!is_choice && provider.end > at && provider.end[-1] == ',') /* "efa, fabric is efa" */
        provider.end--;
    if (is_choice || provider.end == at || *at == '^' || *at == '$')
        return; /* several that may be */
    see(&layers->libfabric, provider_kind(provider), provider);
}

/* ---- UCX ---- */

/* Transports over verbs, and words of UCX_TLS for several of them. */
static enum nccl_net_kind transport_kind(struct span word)
{
    static const char *const rdma[] = {"rc",       "rc_x", "rc_v",    "rc_mlx5",  "rc_verbs", "dc",
                                       "dc_x",     "ud",   "ud_x",    "ud_v",     "ud_mlx5",  "ib",
                                       "ud_verbs", "srd",  "dc_mlx5", "gga_mlx5", "cm"};
    static const char *const within[] = {
        "sm",   "shm",       "posix",   "sysv",      "cma",      "xpmem",    "knem",
        "self", "mm",        "cuda",    "cuda_copy", "cuda_ipc", "gdr_copy", "cuda_async_managed",
        "rocm", "rocm_copy", "rocm_ipc"};
    if (is_one(word, rdma, ARRAY_LEN(rdma)))
        return NCCL_NET_RDMA;
    if (span_is(word, "tcp"))
        return NCCL_NET_TCP;
    return is_one(word, within, ARRAY_LEN(within)) ? 0 : NCCL_NET_UNPROVEN;
}

static bool is_transport(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "rma_am(rc_mlx5/mlx5_0:1) am(tcp/eth1)": the words before the slashes. */
static void take_lanes(struct nccl_layers *layers, struct span line)
{
    for (const char *at = line.at; (at = memchr(at, '/', (size_t)(line.end - at))); at++) {
        struct span word = {at, at};
        while (word.at > line.at && is_transport(word.at[-1]))
            word.at--;
        enum nccl_net_kind kind = transport_kind(word);
        if (kind == NCCL_NET_RDMA || kind == NCCL_NET_TCP)
            see(&layers->ucx, kind, word);
    }
}

/* "rc,cuda_copy": what UCX may choose of; "all" and "^tcp" leave anything open. */
static void take_allowed(struct nccl_layers *layers, struct span list)
{
    enum nccl_net_kind all = 0;
    for (const char *at = list.at; at < list.end;) {
        const char *comma = memchr(at, ',', (size_t)(list.end - at));
        struct span word = {at, comma ? comma : list.end};
        enum nccl_net_kind kind = transport_kind(word);
        all = !kind || all == kind ? all : all ? NCCL_NET_UNPROVEN : kind;
        at = comma ? comma + 1 : list.end;
    }
    if (all)
        see(&layers->ucx, all, list);
}

static void take_ucx(struct nccl_layers *layers, struct span line)
{
    const char *at = span_after(line, "UCX_TLS");
    if (at) {
        const char *value = span_after(span_from(line, at), "set by environment to ");
        value = value ? value : at < line.end && *at == '=' ? at + 1 : NULL;
        struct span list = {value, value};
        while (value && list.end < line.end &&
               (is_transport(*list.end) || strchr(",^~", *list.end)) && *list.end)
            list.end++;
        if (value && list.end > list.at)
            take_allowed(layers, list);
    }
    if (span_after(line, "inter-node cfg") || span_after(line, "ep_cfg["))
        take_lanes(layers, line);
}

void nccl_layers_line(struct nccl_layers *layers, const char *line, size_t length)
{
    const struct span all = {line, line + length};
    take_provider(layers, all);
    take_ucx(layers, all);
}

/* ---- networks ---- */

enum below { BELOW_NOTHING = 1, BELOW_LIBFABRIC, BELOW_UCX };

static enum below below_of(const char *network)
{
    if (strcasestr(network, "libfabric") || strcmp(network, "OFI") == 0)
        return BELOW_LIBFABRIC;
    return strncmp(network, "UCX", 3) == 0 ? BELOW_UCX : BELOW_NOTHING;
}

/* "IBext", "IBext_v8" */
static bool is_version_of(const char *network, const char *name)
{
    size_t length = strlen(name);
    return strncmp(network, name, length) == 0 && (!network[length] || network[length] == '_');
}

enum nccl_net_kind nccl_net_kind(const char *network, const struct nccl_layers *layers)
{
    switch (below_of(network)) {
    case BELOW_LIBFABRIC:
        return layer_kind(&layers->libfabric);
    case BELOW_UCX:
        return layer_kind(&layers->ucx);
    case BELOW_NOTHING:
        break;
    }
    if (strcmp(network, "Socket") == 0)
        return NCCL_NET_TCP;
    return strcmp(network, "IB") == 0 || is_version_of(network, "IBext") ||
                   is_version_of(network, "gIB") || strcmp(network, "SHARP") == 0
               ? NCCL_NET_RDMA
               : NCCL_NET_UNPROVEN;
}

void nccl_net_words(const char *network, const struct nccl_layers *layers, char *text, size_t size)
{
    enum below below = below_of(network);
    bool fabric = below == BELOW_LIBFABRIC;
    const struct nccl_layer *layer = fabric ? &layers->libfabric : &layers->ucx;
    const char *what = fabric ? "provider" : "transport";
    if (below == BELOW_NOTHING)
        snprintf(text, size, "%s", network);
    else if (!layer->words[0])
        snprintf(text, size, "%s, of which no line names the %s", network, what);
    else
        snprintf(text, size, "%s with %s %s", network, what, layer->words);
}
