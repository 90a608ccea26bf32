/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of an NCCL job tell each other before NCCL starts, so that what one of them lacks
 * is said once, in words, instead of being a hang of the others. Pure. */
#ifndef DRARUN_BENCH_NCCL_HELLO_H
#define DRARUN_BENCH_NCCL_HELLO_H

#include "benchmarks/bench/nccl_api.h"

struct nccl_hello {
    int code;          /* an errno value: this rank cannot take part */
    char problem[512]; /* why */
    int nccl;          /* its version, as the library says it */
    int device;
    char address[16]; /* of the device on PCI: 0000:3b:00.0 */
    char host[65];
    ncclUniqueId id; /* rank 0's counts */
};

/* The first reason why these ranks cannot work together; it names ranks and nodes. -errno. */
int nccl_hello_check(const struct nccl_hello *all, unsigned ranks, struct drarun_error *err);

/* Which of the devices that a process sees is for this rank of its node. named: what
 * NCCL_TESTS_DEVICE says, or NULL. Fails when there is none left. */
int nccl_hello_device(unsigned local_rank, int devices, const char *named, int *ret,
                      struct drarun_error *err);

#endif
