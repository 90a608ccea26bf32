/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod itself shows, as values: from JSON here (shape in docs/design/011-derivation.md), or
 * filled in by code that reads the host. Every fact may be missing; the derivation has a default
 * for each. Pure. */
#ifndef DRARUN_JOBS_PROBE_H
#define DRARUN_JOBS_PROBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/topo/host.h"

#define PROBE_NUMAS 64u

enum probe_flag { PROBE_UNKNOWN = 0, PROBE_NO, PROBE_YES };

struct probe_ibdev {
    const char *name;
    uint64_t pci;       /* PCI_NONE */
    int32_t numa;       /* -1 unknown */
    const char *root;   /* pci0000:8c; NULL */
    const char *netdev; /* NULL */
    const char *uplink; /* the interface of the default route that it is part of; NULL */
    bool iwarp;         /* its GIDs are no addresses */
    struct topo_port *ports;
    size_t port_count;
    /* of a probe without ports, in which one port stands for the device */
    const char *link_layer; /* InfiniBand, Ethernet, EFA; NULL */
    int32_t gid;            /* index of the RoCE v2 entry of the pod's address; -1 unknown */
};

struct probe_pair { /* that a topology file puts under one switch */
    uint64_t gpu, nic;
};

struct probe { /* texts are borrowed from the document */
    bool present;
    struct probe_ibdev *ibdevs;
    size_t ibdev_count;
    struct strlist visible; /* every IB device that the pod can see */
    const json_t *files;    /* path -> bool; NULL: not looked at */
    enum probe_flag peermem, dmabuf, nvlink, nested_switch;
    enum probe_flag imex; /* the pod has the device file of an IMEX channel */
    int32_t visible_gpus; /* -1 unknown */
    const char *numa_cpus[PROBE_NUMAS];
    const char *cpuset;     /* what the pod may use; NULL */
    const char *interface;  /* of the pod's default route; NULL */
    const json_t *pci_numa; /* PCI address -> NUMA node; NULL */
    const json_t *gpus;     /* [{pci, uuid, numa, product, vendor, hip, usable}]: seen GPUs; NULL */
    const json_t *other_gpus; /* vendor -> how many, of those that are not in gpus; NULL */
    const json_t *paths;      /* GPU's PCI address -> NIC's -> PIX, PXB, PHB, NODE or SYS; NULL */
    double inter_socket;      /* GB/s; 0 unknown */
    struct probe_pair *pairs;
    size_t pair_count;
    const json_t *metadata; /* DeviceMetadata objects (jobs/derive/inventory/metadata.h); NULL */
    const json_t *metadata_errors; /* texts: files that could not be read; NULL */
    const char *script;            /* path of a vendor's script that is in the pod; NULL */
    const json_t *script_env;  /* what it set, name -> text; NULL: it was not run, or it failed */
    const char *script_reason; /* why; NULL */
};

/* NULL or null: nothing was probed. -EINVAL names the path of what has the wrong type. */
int probe_read(const json_t *document, struct probe *ret_probe, struct drarun_error *err);
void probe_done(struct probe *probe);

/* Unknown where files were not looked at. */
enum probe_flag probe_file(const struct probe *probe, const char *path);

#endif
