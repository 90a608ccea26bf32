/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL's own log says of a job, without any benchmark's table: which connections use RDMA,
 * GPUDirect, or TCP, over which NIC, host by host. The log is that of NCCL_DEBUG=INFO from whatever
 * ran, with others' lines between and their prefixes before it (Ray, torchrun, mpirun, kubectl),
 * and with several of NCCL's lines in one. Forms of lines: docs/design/026-verdict.md. Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_REPORT_H
#define DRARUN_LIB_BENCH_NCCL_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/strlist.h"
#include "lib/bench/nccl_net.h"
#include "lib/bench/nccl_within.h"

#define NCCL_REPORT_NICS 64   /* of a host; what is more counts as the last */
#define NCCL_REPORT_TEXT 32   /* of a network's or device's name, with its NUL */
#define NCCL_REPORT_LISTED 16 /* versions, plugins: of each the first */
#define NCCL_REPORT_NETS 16   /* networks of connections; what is more counts as the last */

struct nccl_report_nic {            /* as a host's ranks use it */
    char network[NCCL_REPORT_TEXT]; /* "IB", "gIB", "AWS Libfabric", "Socket" */
    int index;                      /* NCCL's number of it; -1: not said */
    size_t ends, gpu;               /* of connections; of them with GPUDirect */
};

struct nccl_report_host {
    char *name; /* "" for lines without one */
    struct nccl_report_nic *nics;
    size_t nic_count;
    char (*devices)[NCCL_REPORT_TEXT];    /* by NCCL's number: "mlx5_0:1/RoCE"; NULL: not said */
    char (*interfaces)[NCCL_REPORT_TEXT]; /* the same of TCP: "eth0" */
    size_t p2p, shm;
};

struct nccl_report_link {    /* one line of a connection by a network */
    uint32_t from, to, host; /* host: of the line */
    uint16_t channel;
    uint8_t direction; /* 0, 's', 'r' */
    uint8_t net;       /* of nets */
    bool gpu;
};

struct nccl_report_nvlink { /* one line of P2P of ranks that share an NVLink domain (MNNVL) */
    uint32_t host, from, to;
};

struct nccl_report {
    size_t lines; /* of NCCL at all */
    struct nccl_report_host *hosts;
    size_t host_count, host_room;
    uint32_t *table; /* of hosts by name: index + 1 */
    size_t table_size;
    struct nccl_report_link *links;
    size_t link_count, link_room;
    struct nccl_report_nvlink *nvlinks;
    size_t nvlink_count, nvlink_room;
    char nets[NCCL_REPORT_NETS][NCCL_REPORT_TEXT]; /* of links */
    size_t net_count;
    struct nccl_layers layers;
    struct strlist versions, plugins, networks;
    uint32_t ranks;            /* of the largest communicator; 0: not said */
    struct nccl_within within; /* hosts; its net by nccl_report_read, and its p2p of nvlinks */
    size_t nvlink_hosts, in_network;
    bool nvls;
    /* why it is as it is */
    bool ib_disabled, socket_chosen, no_verbs, plugin_failed;
    char no_device[64];                 /* the first host without an RDMA device */
    size_t gpu_off_device, gpu_off_far; /* lines: of NICs, of pairs */
    size_t folded;                      /* lines that Ray left out */
    size_t warnings;
    char warning[160]; /* the first */
    /* of links between hosts; an end each of sender and receiver is one connection */
    size_t rdma, rdma_gpu, tcp, unproven;
    size_t unproven_net; /* of nets: the first of unproven */
    bool failed;         /* out of memory */
};

void nccl_report_done(struct nccl_report *report);

/* -EINVAL, kind SPEC: there is no line of NCCL's; name for the message. *ret is done with
 * nccl_report_done also on failure. */
int nccl_report_read(const char *text, size_t length, const char *name, struct nccl_report *ret,
                     struct drarun_error *err);

enum nccl_report_verdict {
    NCCL_REPORT_UNKNOWN = 1, /* no connection between hosts is in the log */
    NCCL_REPORT_ONE_HOST,
    NCCL_REPORT_NVLINK, /* between hosts, too */
    NCCL_REPORT_TCP,
    NCCL_REPORT_MIXED,    /* TCP, and others */
    NCCL_REPORT_UNPROVEN, /* a network that is not known to be RDMA */
    NCCL_REPORT_HOST,     /* RDMA, not all of it with GPUDirect */
    NCCL_REPORT_GPU,      /* RDMA with GPUDirect */
};
enum nccl_report_verdict nccl_report_verdict(const struct nccl_report *report);

struct verdict_demands;
/* Adds sentences of what is demanded and not met: a log alone has no bandwidth. */
void nccl_report_demand(const struct nccl_report *report, const struct verdict_demands *demands,
                        struct strlist *failures);

/* failures: of nccl_report_demand. */
void nccl_report_text(const struct nccl_report *report, const struct strlist *failures,
                      struct buf *out);
/* A new reference; NULL without memory. */
json_t *nccl_report_json(const struct nccl_report *report, const struct strlist *failures);

/* "mlx5_0:1/RoCE", "eth0"; "" where the log does not say it. */
const char *nccl_report_device(const struct nccl_report_host *host,
                               const struct nccl_report_nic *nic);

#endif
