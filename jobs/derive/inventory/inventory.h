/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of one worker: from its claims, the slices that describe them, the metadata files of
 * their drivers, and what its pod shows. Only what can carry data or compute is in the lists; what
 * was left out, and why, is beside them. The first step of a plan. Pure. */
#ifndef DRARUN_JOBS_INVENTORY_H
#define DRARUN_JOBS_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/derive/inventory/device.h"
#include "jobs/derive/inventory/metadata.h"
#include "jobs/derive/inventory/plan_input.h"
#include "jobs/derive/inventory/probe.h"
#include "jobs/derive/warnings/plan_notes.h"
#include "lib/base/buf.h"
#include "lib/topo/data_nics.h"

struct inventory_nic {
    struct device device;
    const char *label; /* IB device, else interface, else the DRA name */
    const char *ibdev; /* NULL: not known */
    const char *link_layer;
    const struct topo_port *ports; /* the probe's; NULL: not known */
    size_t port_count;
    uint32_t data_ports; /* bit i: ports[i] carries data */
    int32_t gid;         /* of a probe that tells the index alone; -1 unknown */
    bool iwarp;          /* its GIDs are no addresses */
    uint32_t mbps;       /* Mb/s of all ports that carry data; 0: not known */
};

/* An RDMA NIC that carries no data, though the worker has it. */
struct plan_left_nic {
    struct device device;
    const char *ibdev;
    enum nic_use use;
    bool claimed;
    const char *reason; /* "mlx5_4 (part of the uplink eth0)" */
};

struct inventory {
    const char *pod, *node;
    const char *clique; /* of NVLink; NULL: not known */
    struct probe probe;
    struct metadata metadata;
    struct device *gpus; /* in PCI order */
    size_t gpu_count;
    uint32_t unread_gpus, unread_nics; /* claimed, and described by nothing (slices_unknown) */
    uint32_t plugin_gpus; /* of a device plugin, which no probe has shown: they are in no list */
    struct inventory_nic *nics; /* that carry data, in PCI order */
    size_t nic_count;
    struct plan_left_nic *left; /* NICs that carry none */
    size_t left_count;
    const char *unknown;         /* allocated devices that are neither GPU nor NIC; NULL */
    struct device *node_devices; /* all of the node's slices */
    size_t node_device_count;
    bool channel, mig, gpu_asked;
};

/* Borrows from the input and the notes. 1: refused; there is an inventory then, too. -EINVAL,
 * -EAGAIN: a claim, a slice or the probe cannot be read. */
int inventory_read(const struct plan_input *input, uint32_t worker, struct plan_notes *notes,
                   struct inventory *ret_inventory, struct drarun_error *err);
void inventory_done(struct inventory *inventory);

/* NULL: it has none. */
const struct inventory_nic *inventory_first_rdma(const struct inventory *inventory);
/* The reasons of the NICs that were left out, in a line. */
void inventory_left(const struct inventory *inventory, struct buf *out);

/* An AMD GPU's number in ROCm's order, as "3"; NULL: not known. */
const char *inventory_hip_number(const struct inventory *inventory, size_t gpu);
/* All GPUs have one. */
bool inventory_has_hip_numbers(const struct inventory *inventory);

/* The ports of a NIC that carry data, at most DATA_NIC_PORTS_MAX; 0: not known, so its first. */
size_t inventory_nic_ports(const struct inventory_nic *nic, const struct topo_port **ret_ports);
/* The order of devices: by PCI address, without one by index. */
bool inventory_comes_before(const struct device *a, const struct device *b);

#endif
