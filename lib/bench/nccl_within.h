/* SPDX-License-Identifier: Apache-2.0 */
/* How NCCL connected the GPUs of one host, and why they do not reach each other's memory (P2P):
 *
 *   Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read, via SHM/direct/direct
 *   NCCL_P2P_DISABLE set by environment to 1.
 *   NCCL_P2P_LEVEL set by environment to LOC
 *   P2P is disabled between connected GPUs 0 and 1. You can repress this message with ...
 *   Could not enable P2P between dev 0(=41000) and dev 1(=81000)
 *
 * (src/graph/paths.cc and src/transport/p2p.cc of NCCL 2.4 to 2.30.) Pure. */
#ifndef DRARUN_LIB_BENCH_NCCL_WITHIN_H
#define DRARUN_LIB_BENCH_NCCL_WITHIN_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/buf.h"

struct nccl_within {
    size_t p2p, shm, net; /* connections: to the GPU, through the host's memory, by the network */
    bool p2p_disabled, p2p_level, shm_disabled; /* by variables */
    bool refused;                               /* by the driver: ACS, IOMMU, a kind of GPU */
};

/* Takes what a line without its end says of the reasons. */
void nccl_within_reasons(struct nccl_within *within, const char *line, size_t length);

/* "6 by P2P, 2 by shared memory" */
void nccl_within_text(const struct nccl_within *within, struct buf *out);

/* Some of the GPUs are connected otherwise than by P2P. */
bool nccl_within_detours(const struct nccl_within *within);
/* One line says why, and what to do. */
bool nccl_within_has_reason(const struct nccl_within *within);
/* A sentence for that, or with what it may be. */
void nccl_within_why(const struct nccl_within *within, struct buf *out);

#endif
