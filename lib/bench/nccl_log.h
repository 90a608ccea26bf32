/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL_DEBUG=INFO says of how ranks reach each other: lines as
 *
 *   host:12:34 [0] NCCL INFO Channel 02/0 : 2[2] -> 10[2] [send] via NET/IB/2/GDRDMA
 *   host:12:34 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:...
 *   host:12:34 [0] NCCL INFO Using network IB
 *
 * (src/transport/net.cc, net_ib.cc, p2p.cc and init.cc of NCCL 2.4 to 2.30). Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_LOG_H
#define DRARUN_LIB_BENCH_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>

#define NCCL_LOG_NICS 32

struct nccl_log {
    size_t lines;                 /* of NCCL at all */
    size_t p2p, shm;              /* connections within a host */
    size_t nvlink_hosts;          /* between hosts over NVLink (MNNVL) */
    size_t sockets;               /* over TCP */
    size_t rdma, rdma_gpu;        /* over anything else; of them with GPUDirect RDMA */
    size_t in_network;            /* reduced by the network (SHARP) */
    bool nvls;                    /* reduced by NVSwitch */
    char network[32];             /* "IB", "Socket", "gIB", "AWS Libfabric" */
    char nics[NCCL_LOG_NICS][24]; /* "mlx5_0:1/RoCE" */
    size_t nic_count;
    char host_gpu_off[64]; /* the first that has RDMA without GPUDirect: "host rank 3" */
};

/* Looks at one line, without its end; false when it is none of NCCL's. */
bool nccl_log_line(struct nccl_log *log, const char *line, size_t length);

#endif
