/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a network of NCCL's log is RDMA. A network's name alone says so for NCCL's own verbs
 * transport and for plugins that know nothing else; of libfabric its provider says it, of UCX its
 * transports. Whatever is not known to be RDMA is not proven to be. Lines of the log:
 *
 *   NET/OFI Selected provider is tcp;ofi_rxm, fabric is 10.0.0.0/24 (found 2 nics)
 *   NET/OFI Setting provider_filter to efa; FI_PROVIDER=efa
 *   ... UCX  INFO  ucp_context_0 inter-node cfg#2 rma_am(rc_mlx5/mlx5_0:1) am(rc_mlx5/mlx5_0:1)
 *   ... UCX_TLS=rc,cuda_copy; NCCL_UCX_TLS set by environment to rc
 *
 * (aws-ofi-nccl 1.0 to 1.18, UCX 1.13 to 1.19.) The table of names: docs/design/026-verdict.md.
 * Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_NET_H
#define DRARUN_LIB_BENCH_NCCL_NET_H

#include <stdbool.h>
#include <stddef.h>

enum nccl_net_kind {
    NCCL_NET_UNPROVEN = 1,
    NCCL_NET_RDMA,
    NCCL_NET_TCP, /* TCP, or UDP */
};

struct nccl_layer { /* below a plugin, over all lines and hosts */
    bool rdma, tcp, other;
    char words[48]; /* of the log: of the first that is no RDMA, else of the first */
};

struct nccl_layers {
    struct nccl_layer libfabric, ucx;
};

/* Takes a line without its end into account, whatever it says. */
void nccl_layers_line(struct nccl_layers *layers, const char *line, size_t length);

/* network: as connections name it, "IB", "AWS Libfabric". */
enum nccl_net_kind nccl_net_kind(const char *network, const struct nccl_layers *layers);

/* "AWS Libfabric with provider tcp;ofi_rxm", "UCX, of which no line names the transport" */
void nccl_net_words(const char *network, const struct nccl_layers *layers, char *text, size_t size);

#endif
