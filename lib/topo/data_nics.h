/* SPDX-License-Identifier: Apache-2.0 */
/* Which RDMA devices, and which of their ports, carry a job's data: one rule for what `drarun topo`
 * pairs with GPUs and for what the derivation puts into NCCL_IB_HCA (docs/design/013-topology.md).
 * Pure. */
#ifndef DRARUN_TOPO_DATA_NICS_H
#define DRARUN_TOPO_DATA_NICS_H

#include "lib/topo/host.h"

enum nic_use {
    NIC_USE_DATA = 1,
    NIC_USE_WITHHELD, /* its verbs node is not in this pod */
    NIC_USE_DOWN,     /* it has ports, and none is active */
    NIC_USE_UPLINK,   /* its interface carries the default route, or is part of the one that does */
    NIC_USE_OTHER_LINK, /* of another link layer than the one that can carry most */
    NIC_USE_OTHER_RATE, /* as storage NICs have */
};

struct data_nic {
    /* facts, borrowed */
    const char *name;
    const struct topo_port *ports; /* NULL: not known */
    size_t port_count;             /* of more than DATA_NIC_PORTS_MAX the first ones count */
    enum topo_tri usable;
    const char *uplink; /* the interface that it is, or is part of; NULL */
    bool claimed;       /* named by a claim: its rate does not rule it out */
    /* the choice */
    enum nic_use use;
    uint32_t data_ports; /* bit i: ports[i] carries data */
    enum topo_link most; /* OTHER_LINK: the link layer that was chosen */
    uint32_t most_mbps;  /* OTHER_RATE: the rate that was chosen */
};

#define DATA_NIC_PORTS_MAX 16u

/* The link layer whose ports carry most together, and of its rates the one that does: a few faster
 * NICs for storage outvote no more than a few slower ones. What is not known rules nothing out. The
 * uplink is used where no other device could be. */
void data_nics_choose(struct data_nic *nics, size_t count);

/* The first port that carries data; NULL: none, or not known. */
const struct topo_port *data_nic_port(const struct data_nic *nic);

/* "mlx5_4 (part of the uplink eth0)", for a device that carries no data. */
void data_nic_reason(const struct data_nic *nic, char *text, size_t size);

#endif
