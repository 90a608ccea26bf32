/* SPDX-License-Identifier: Apache-2.0 */
/* The GID table of a RoCE port: where its own addresses are, and which entry NCCL takes by itself
 * (src/transport/net_ib.cc ncclUpdateGidIndex and ncclIbRoceGetVersionNum, read at the tags v2.20.5
 * to v2.30.7; docs/design/011-derivation.md). Pure. */
#ifndef DRARUN_JOBS_GID_TABLE_H
#define DRARUN_JOBS_GID_TABLE_H

#include "lib/topo/host.h"

struct gid_table {
    bool known;         /* types can be read, so that what is missing is known to be missing */
    int32_t ipv4, ipv6; /* the first RoCE v2 entry of an address that routers forward; -1: none */
    int32_t local;      /* the first RoCE v2 entry of a link-local address, IPv4 before IPv6; -1 */
    char local_text[48];
};

void gid_table_read(const struct topo_port *port, struct gid_table *ret_table);

#define GID_PICK_ERROR (-1) /* NCCL ends with a system error */

/* The entry that NCCL takes where NCCL_IB_GID_INDEX is not set. ipv6: NCCL_IB_ADDR_FAMILY is
 * AF_INET6. */
int32_t gid_nccl_pick(const struct topo_port *port, uint32_t version, bool ipv6);

#endif
