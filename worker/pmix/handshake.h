/* SPDX-License-Identifier: Apache-2.0 */
/* The first message of a PMIx client or tool, as far as an agent looks at it before libpmix does:
 * how long it is, and which process it says that it is. Nothing of it is believed. Pure. */
#ifndef DRARUN_WORKER_PMIX_HANDSHAKE_H
#define DRARUN_WORKER_PMIX_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDSHAKE_HEADER 16u
/* With its header. Those of clients have a few hundred bytes; libpmix would take 128 KiB. */
#define HANDSHAKE_MAX (64u * 1024)

struct handshake {
    bool client; /* it says that it is a rank, not a tool */
    bool tool;   /* one that no server has started */
    bool named;  /* it gives nspace and rank */
    char nspace[256];
    uint32_t rank;
};

/* The length of the message with its header, from its first HANDSHAKE_HEADER bytes; 0: none that we
 * take. */
size_t handshake_length(const void *header);
/* From the whole message. -EPROTO when it is none. */
int handshake_read(const void *data, size_t length, struct handshake *ret);

#endif
