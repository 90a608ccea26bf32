/* SPDX-License-Identifier: Apache-2.0 */
/* What `drarun topo` shows of a host, whatever it was read from: which NICs count, which GPU goes
 * with which NIC, and the tree of host bridges and switches. Pure; the host must outlive the view.
 */
#ifndef DRARUN_LAUNCHER_TOPO_VIEW_H
#define DRARUN_LAUNCHER_TOPO_VIEW_H

#include <jansson.h>
#include "lib/base/buf.h"
#include "lib/topo/data_nics.h"
#include "lib/topo/host.h"

/* RDMA devices; where there are GPUs and no RDMA device at all, network interfaces of PCI functions
 * stand for them, since GPUDirect-TCPX and plain sockets run over those. */
struct view_nic {
    const char *name;
    size_t pci;                    /* TOPO_NONE: not known */
    const struct topo_rdma *rdma;  /* NULL: a network interface */
    const struct topo_netdev *net; /* NULL: none seen */
    uint32_t mbps;                 /* of all active ports; 0: not known */
    enum topo_tri usable;
    struct data_nic data;      /* whether, and by which ports, it carries a job's data */
    struct topo_port net_port; /* stands for the ports of a network interface */
};

struct view_link {
    size_t gpu, nic;
    enum topo_path path;
};

/* The job above the node of one of its workers, for a picture. All borrowed. */
struct view_job {
    const char *title; /* "job train: worker 1 on node-3, ranks 4 to 7 of 16" */
    uint32_t workers, worker;
    const char *const *nodes;   /* of each worker; NULL: not known */
    const char *const *domains; /* NVLink's, of each worker; NULL: not known */
};

struct topo_view {
    const struct topo_host *host;
    struct view_nic *nics;
    size_t nic_count;
    struct view_link *links; /* the pairing, by GPU, then NIC */
    size_t link_count;
    /* What the check of a job's NICs found (jobs/preflight/fabric.h), for the picture of one of its
     * workers; borrowed. NULL: none was given. */
    const json_t *fabric;
    uint32_t worker;
    const struct view_job *job; /* NULL: a node alone */
    char *nic_states; /* of each NIC, as fabric_state; 0: it is no rail of the worker. NULL: the
                       * rails are not told apart */
};

int topo_view_make(const struct topo_host *host, struct topo_view *ret_view,
                   struct drarun_error *err);
void topo_view_done(struct topo_view *view);

/* GPU to NIC; P2C where the host has chip-to-chip links. */
enum topo_path view_path(const struct topo_view *view, size_t gpu, size_t nic);
/* Whether something was given to this pod: known to be under /dev here while others are not. */
bool view_claimed_known(const struct topo_view *view);
const char *view_gpu_name(const struct topo_gpu *gpu);   /* product, or vendor */
const char *view_link_words(const struct view_nic *nic); /* "RoCE", "InfiniBand", ... */
/* The first port that carries data, else the first; NULL: an interface, or no port was seen. */
const struct topo_port *view_port(const struct view_nic *nic);
/* Mb/s as people write it: "400G", "2.5G"; "?" for 0. */
void view_rate(uint32_t mbps, char text[16]);

/* The switches above a function from the root down, as their upstream ports; at most max. */
size_t view_switches(const struct pci_place *place, struct pci_addr *ret_switches, size_t max);

/* "8 GPUs, 8 NICs; a4-0" */
void view_summary(const struct topo_view *view, struct buf *out);
const char *view_path_meaning(enum topo_path path);

/* The printers. They set out->failed when memory runs out. */
void topo_text(const struct topo_view *view, struct buf *out);
json_t *topo_json(const struct topo_view *view); /* NULL: out of memory */
void topo_svg(const struct topo_view *view, struct buf *out);
void topo_nccl_xml(const struct topo_view *view, struct buf *out);

#endif
