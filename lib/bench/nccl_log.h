/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL_DEBUG=INFO says of how ranks reach each other: lines as
 *
 *   host:12:34 [0] NCCL INFO Channel 02/0 : 2[2] -> 10[2] [send] via NET/IB/2/GDRDMA
 *   host:12:34 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:...
 *
 * (src/transport/net.cc, net_ib.cc, p2p.cc and init.cc of NCCL 2.4 to 2.30). Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_LOG_H
#define DRARUN_LIB_BENCH_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/bench/nccl_net.h"
#include "lib/bench/nccl_within.h"
#include "lib/bench/result.h"

#define NCCL_LOG_NICS 32
#define NCCL_LOG_NETS 8

struct nccl_log_net {
    char name[32];     /* "IB", "Socket", "gIB", "AWS Libfabric"; "" is all that found no place */
    size_t count, gpu; /* connections; of them with GPUDirect */
    char host_gpu_off[64]; /* the first without GPUDirect: "host rank 3" */
};

struct nccl_log {
    size_t lines;                            /* of NCCL at all */
    struct nccl_within within;               /* a host; its net: ranks whose hosts were known */
    size_t nvlink_hosts;                     /* between hosts over NVLink (MNNVL) */
    struct nccl_log_net nets[NCCL_LOG_NETS]; /* others than those of within */
    size_t net_count;
    size_t between_ranks; /* no rank of nets and nvlink_hosts has as high a number */
    struct nccl_layers layers;
    char nics[NCCL_LOG_NICS][24]; /* "mlx5_0:1/RoCE" */
    size_t nic_count;
    size_t seen_ranks; /* of which is known whether they are in several groups */
    bool grouped;
};

struct nccl_log_sums { /* of connections by networks */
    size_t rdma, rdma_gpu, tcp, unproven;
    char rdma_names[64]; /* "IB" */
    char tcp_words[96];  /* of the first: "AWS Libfabric with provider tcp;ofi_rxm" */
    char unproven_words[96];
    const char *host_gpu_off; /* in the log; "" */
};

/* Looks at one line, without its end; false when it says nothing. ranks: whose hosts tell what is
 * within one; NULL. */
bool nccl_log_line(struct nccl_log *log, const struct result *ranks, const char *line,
                   size_t length);

void nccl_log_sum(const struct nccl_log *log, struct nccl_log_sums *ret);

/* Where all ranks of the log are known now, and of one host, what was taken for connections between
 * hosts is within it. */
void nccl_log_settle(struct nccl_log *log, const struct result *ranks);

#endif
