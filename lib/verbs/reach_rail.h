/* SPDX-License-Identifier: Apache-2.0 */
/* A port of an RDMA device that writes to one neighbour and is written to by another, over reliable
 * connections: what NCCL and MPI do, in small (docs/design/038-open-nics.md). Calls block, in
 * drivers for as long as those do: for a process of its own, with a thread for each rail and end.
 */
#ifndef DRARUN_VERBS_REACH_RAIL_H
#define DRARUN_VERBS_REACH_RAIL_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/verbs/reach_fault.h"

#define REACH_MESSAGES 8u
#define REACH_MESSAGE_BYTES 4096u

struct reach_rail;

enum reach_end { REACH_IN = 0, REACH_OUT }; /* written to; writing */

/* What the other side needs to connect to an end. */
struct reach_address {
    uint32_t qp, psn, lid, mtu; /* mtu: bytes */
    bool global;                /* reached by its GID: Ethernet */
    uint8_t gid[16];
    uint64_t at; /* of the memory that is written to, and its key */
    uint32_t key;
};

struct reach_failure {
    enum reach_fault fault;
    int code;      /* errno; 0 of a completion */
    char why[160]; /* in the words of the kernel or of libibverbs */
};

/* gid: the index of the port's own address; it does not matter on InfiniBand. Both ends are made,
 * and the receiving one is ready for a write. False: ret_failure says why. A rail lives as long as
 * the process, since a driver's call may hold it. */
bool reach_rail_open(const char *device, uint32_t port, uint32_t gid, struct reach_rail **ret_rail,
                     struct reach_failure *ret_failure);
void reach_rail_address(const struct reach_rail *rail, enum reach_end end,
                        struct reach_address *ret_address);

/* The receiving end takes what the writer at this address sends. Once. */
bool reach_rail_accept(struct reach_rail *rail, const struct reach_address *from,
                       struct reach_failure *ret_failure);
/* After reach_rail_accept: waits, without a deadline, until REACH_MESSAGES have come, and compares
 * them with what `seed` makes. */
bool reach_rail_await(struct reach_rail *rail, uint64_t seed, struct reach_failure *ret_failure);

/* Connects the sending end to a receiving one, which has accepted it, writes the messages that
 * `seed` makes, and waits until they are acknowledged, for limit_ms at most. Once. */
bool reach_rail_write(struct reach_rail *rail, const struct reach_address *to, uint64_t seed,
                      int64_t limit_ms, struct reach_failure *ret_failure);

#endif
