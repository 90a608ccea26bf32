/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words in a line that has no end ---- */

static const char *after(const char *line, size_t length, const char *word)
{
    const char *at = memmem(line, length, word, strlen(word));
    return at ? at + strlen(word) : NULL;
}

static void copy(char *to, size_t size, const char *from, const char *end, const char *until)
{
    size_t length = 0;
    while (from + length < end && length + 1 < size && !strchr(until, from[length]))
        length++;
    for (size_t i = 0; i < length; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[length] = '\0';
}

/* ---- connections ---- */

/* "host:12:34 [0] NCCL INFO Channel 02/0 : 2[2] -> 10[2]": whose it is. */
static void name_rank(const char *line, const char *end, char *ret, size_t size)
{
    char host[40], rank[12];
    const char *channel = after(line, (size_t)(end - line), " : ");
    copy(host, sizeof host, line, end, ": \t");
    copy(rank, sizeof rank, channel ? channel : end, end, "[ ");
    snprintf(ret, size, "%s rank %s", host, rank);
}

static void network_connection(struct nccl_log *log, const char *line, const char *to,
                               const char *end)
{
    if (after(to, (size_t)(end - to), "Socket") == to + strlen("Socket")) {
        log->sockets++;
        return;
    }
    log->rdma++;
    if (after(to, (size_t)(end - to), "GDRDMA"))
        log->rdma_gpu++;
    else if (!log->host_gpu_off[0])
        name_rank(line, end, log->host_gpu_off, sizeof log->host_gpu_off);
}

/* True when the line says how two ranks are connected. */
static bool connection(struct nccl_log *log, const char *line, const char *end)
{
    size_t length = (size_t)(end - line);
    const char *to;
    if ((to = after(line, length, " via NET/"))) {
        network_connection(log, line, to, end);
    } else if ((to = after(line, length, " via COLLNET/"))) {
        log->in_network++;
        network_connection(log, line, to, end);
    } else if (after(line, length, " via P2P/MNNVL")) {
        log->nvlink_hosts++;
    } else if (after(line, length, " via P2P/")) {
        log->p2p++;
    } else if (after(line, length, " via SHM")) {
        log->shm++;
    } else {
        return false;
    }
    return true;
}

/* ---- what there is ---- */

/* "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>": each once, of all ranks. */
static void take_nics(struct nccl_log *log, const char *from, const char *end)
{
    const char *stop = after(from, (size_t)(end - from), ";");
    end = stop ? stop - 1 : end;
    for (const char *at = from; (at = memchr(at, '[', (size_t)(end - at)));) {
        char name[sizeof *log->nics];
        size_t i = 0;
        const char *close = memchr(at, ']', (size_t)(end - at));
        if (!close)
            break;
        copy(name, sizeof name, close + 1, end, " \t");
        while (i < log->nic_count && strcmp(log->nics[i], name) != 0)
            i++;
        if (strchr(name, '/') && i == log->nic_count && log->nic_count < NCCL_LOG_NICS)
            memcpy(log->nics[log->nic_count++], name, sizeof name);
        at = close;
    }
}

bool nccl_log_line(struct nccl_log *log, const char *line, size_t length)
{
    const char *end = line + length;
    const char *at;
    if (!after(line, length, "NCCL INFO ") && !after(line, length, "NCCL WARN "))
        return false;
    log->lines++;
    if (connection(log, line, end))
        return true;
    if ((at = after(line, length, "NET/IB : Using ")))
        take_nics(log, at, end);
    else if ((at = after(line, length, "Using network ")))
        copy(log->network, sizeof log->network, at, end, "\r\t");
    else if (after(line, length, "Connected NVLS"))
        log->nvls = true;
    return true;
}
