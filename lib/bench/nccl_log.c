/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bench/nccl_record.h"
#include "lib/bench/span.h"

/* ---- whose hosts ---- */

/* Ranks ran in several groups, as far as they are known now. */
static bool is_grouped(struct nccl_log *log, const struct result *ranks)
{
    if (log->seen_ranks != ranks->rank_count)
        log->grouped = result_groups(ranks) > 1;
    log->seen_ranks = ranks->rank_count;
    return log->grouped;
}

/* NCCL's name of a host ends at a dot. */
static bool is_host(const char *name, const char *host, const char *end)
{
    size_t length = (size_t)(end - host);
    return strncmp(name, host, length) == 0 && (!name[length] || name[length] == '.');
}

/* A rank of the process that wrote "host:12:34 [0] NCCL INFO ..."; NULL: it is not known. */
static const struct result_rank *writer_of(const struct result *r, struct span line)
{
    const char *words = span_find(line, "NCCL INFO "), *host, *end;
    if (!words || !nccl_record_host(line.at, words, &host, &end))
        return NULL;
    long pid = strtol(end + 1, NULL, 10); /* a colon is behind it */
    for (size_t i = 0; pid > 0 && i < r->rank_count; i++)
        if (r->ranks[i].pid == pid && is_host(r->ranks[i].host, host, end))
            return &r->ranks[i];
    return NULL;
}

/* peer: NULL, or of the group of whose ranks that is the number. */
static const char *host_of(const struct result *r, const struct result_rank *peer, uint64_t rank)
{
    if (!peer && rank < r->rank_count && r->ranks[rank].rank == rank)
        return r->ranks[rank].host;
    for (size_t i = 0; i < r->rank_count; i++) {
        const struct result_rank *at = &r->ranks[i];
        if (peer ? at->group == peer->group && rank-- == 0 : at->rank == rank)
            return at->host;
    }
    return "";
}

/* The table numbers all ranks; NCCL numbers those of each communicator, that is each group, from 0.
 * A line of an unknown group says nothing of it. */
static bool is_within(struct nccl_log *log, const struct result *ranks, struct span line,
                      const uint64_t of[2])
{
    const struct result_rank *peer = NULL;
    if (!ranks || (is_grouped(log, ranks) && !(peer = writer_of(ranks, line))))
        return false;
    const char *host = host_of(ranks, peer, of[0]);
    return host[0] && strcmp(host, host_of(ranks, peer, of[1])) == 0;
}

/* ---- connections ---- */

/* "host:12:34 [0] NCCL INFO Channel 02/0 : 2[2] -> 10[2]": whose it is. */
static void name_rank(struct span line, char *ret, size_t size)
{
    char host[40], rank[12];
    const char *channel = span_after(line, " : ");
    span_copy(line, ": \t", host, sizeof host);
    span_copy(span_from(line, channel ? channel : line.end), "[ ", rank, sizeof rank);
    snprintf(ret, size, "%s rank %s", host, rank);
}

static struct nccl_log_net *net_of(struct nccl_log *log, struct span to)
{
    char name[sizeof log->nets->name];
    span_copy(to, "/\r\t", name, sizeof name);
    for (size_t i = 0; i < log->net_count; i++)
        if (strcmp(log->nets[i].name, name) == 0)
            return &log->nets[i];
    bool is_last = log->net_count + 1 >= NCCL_LOG_NETS;
    struct nccl_log_net *net = &log->nets[is_last ? NCCL_LOG_NETS - 1 : log->net_count];
    if (!is_last)
        memcpy(net->name, name, sizeof name);
    log->net_count += log->net_count < NCCL_LOG_NETS;
    return net;
}

static bool rank_at(struct span at, uint64_t *ret)
{
    char digits[10];
    span_copy(at, "[ ", digits, sizeof digits);
    char *behind;
    *ret = strtoull(digits, &behind, 10);
    return digits[0] >= '0' && digits[0] <= '9' && !*behind;
}

/* "Channel 00/0 : 0[0] -> 1[1] [send]" */
static bool both_ranks(struct span line, uint64_t ret[2])
{
    const char *from = span_after(line, " : "), *to = span_after(line, " -> ");
    return from && to && rank_at(span_from(line, from), &ret[0]) &&
           rank_at(span_from(line, to), &ret[1]);
}

/* Of a line whose ranks are of two hosts, or of hosts that are not known. */
static bool is_between(struct nccl_log *log, const struct result *ranks, struct span line)
{
    uint64_t of[2] = {UINT32_MAX, UINT32_MAX}; /* not known */
    if (both_ranks(line, of) && is_within(log, ranks, line, of))
        return false;
    for (size_t i = 0; i < 2; i++)
        log->between_ranks = of[i] >= log->between_ranks ? of[i] + 1 : log->between_ranks;
    return true;
}

/* to: behind "via NET/", to the line's end. */
static void network_connection(struct nccl_log *log, const struct result *ranks, struct span line,
                               struct span to)
{
    if (!is_between(log, ranks, line)) {
        log->within.net++;
        return;
    }
    struct nccl_log_net *net = net_of(log, to);
    net->count++;
    if (span_find(to, "GDRDMA"))
        net->gpu++;
    else if (!net->host_gpu_off[0])
        name_rank(line, net->host_gpu_off, sizeof net->host_gpu_off);
}

/* True when the line says how two ranks are connected. */
static bool connection(struct nccl_log *log, const struct result *ranks, struct span line)
{
    const char *to;
    if ((to = span_after(line, " via NET/"))) {
        network_connection(log, ranks, line, span_from(line, to));
    } else if ((to = span_after(line, " via COLLNET/"))) {
        network_connection(log, ranks, line, span_from(line, to));
    } else if (span_find(line, " via P2P/MNNVL")) {
        /* NCCL says so of all P2P where ranks share an NVLink domain, that of a host, too */
        if (is_between(log, ranks, line))
            log->nvlink_hosts++;
        else
            log->within.p2p++;
    } else if (span_find(line, " via P2P/")) {
        log->within.p2p++;
    } else if (span_find(line, " via SHM")) {
        log->within.shm++;
    } else {
        return false;
    }
    return true;
}

/* ---- what there is ---- */

/* "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>": each once, of all ranks. */
static void take_nics(struct nccl_log *log, struct span list)
{
    const char *stop = span_find(list, ";");
    list.end = stop ? stop : list.end;
    while ((list.at = span_find(list, "["))) {
        char name[sizeof *log->nics];
        size_t i = 0;
        const char *close = span_find(list, "]");
        if (!close)
            break;
        span_copy(span_from(list, close + 1), " \t", name, sizeof name);
        while (i < log->nic_count && strcmp(log->nics[i], name) != 0)
            i++;
        if (strchr(name, '/') && i == log->nic_count && log->nic_count < NCCL_LOG_NICS)
            memcpy(log->nics[log->nic_count++], name, sizeof name);
        list.at = close;
    }
}

bool nccl_log_line(struct nccl_log *log, const struct result *ranks, const char *line,
                   size_t length)
{
    const struct span all = {line, line + length};
    const char *at;
    nccl_layers_line(&log->layers, line, length);
    if (!span_find(all, "NCCL INFO ") && !span_find(all, "NCCL WARN "))
        return false;
    log->lines++;
    if (connection(log, ranks, all))
        return true;
    nccl_within_reasons(&log->within, line, length);
    if ((at = span_after(all, "NET/IB : Using ")))
        take_nics(log, span_from(all, at));
    return true;
}

/* ---- sums ---- */

void nccl_log_sum(const struct nccl_log *log, struct nccl_log_sums *ret)
{
    struct nccl_log_sums s = {.host_gpu_off = ""};
    for (size_t i = 0; i < log->net_count; i++) {
        const struct nccl_log_net *net = &log->nets[i];
        const char *name = net->name[0] ? net->name : "others";
        enum nccl_net_kind kind = nccl_net_kind(net->name, &log->layers);
        size_t used = strlen(s.rdma_names);
        if (kind == NCCL_NET_RDMA) {
            snprintf(s.rdma_names + used, sizeof s.rdma_names - used, "%s%s", used ? ", " : "",
                     name);
            s.host_gpu_off = s.host_gpu_off[0] ? s.host_gpu_off : net->host_gpu_off;
            s.rdma += net->count;
            s.rdma_gpu += net->gpu;
        } else if (kind == NCCL_NET_TCP) {
            if (s.tcp == 0)
                nccl_net_words(name, &log->layers, s.tcp_words, sizeof s.tcp_words);
            s.tcp += net->count;
        } else {
            if (s.unproven == 0)
                nccl_net_words(name, &log->layers, s.unproven_words, sizeof s.unproven_words);
            s.unproven += net->count;
        }
    }
    *ret = s;
}

void nccl_log_settle(struct nccl_log *log, const struct result *ranks)
{
    if (log->net_count + log->nvlink_hosts == 0 || log->between_ranks > ranks->rank_count ||
        result_hosts(ranks) != 1)
        return;
    log->within.p2p += log->nvlink_hosts;
    log->nvlink_hosts = 0;
    for (size_t i = 0; i < log->net_count; i++)
        log->within.net += log->nets[i].count;
    log->net_count = 0;
    memset(log->nets, 0, sizeof log->nets);
}
