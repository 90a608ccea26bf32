/* SPDX-License-Identifier: Apache-2.0 */
/* Which NICs NCCL lets a GPU use and how: its own rules (src/graph/paths.cc ncclTopoComputePaths
 * and ncclTopoCheckGdr, src/graph/topo.cc ncclTopoGetLocal and ncclTopoGetLocalNet; tags 2.26.6 to
 * 2.30.7) over the classes of the GPU-NIC pairs. Pure. */
#ifndef DRARUN_JOBS_NCCL_TOPOLOGY_H
#define DRARUN_JOBS_NCCL_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_GPUS_MAX 64u
#define NCCL_NICS_MAX 64u
#define NCCL_VERSION(major, minor, patch) ((major)*10000u + (minor)*100u + (patch))
#define NCCL_VERSION_NEWEST NCCL_VERSION(2, 30, 7) /* the newest whose code was read */

/* In NCCL's order of 2.27 and later, so that they compare as there. */
enum nccl_path {
    NCCL_PATH_LOC = 0,
    NCCL_PATH_NVL,
    NCCL_PATH_NVB,
    NCCL_PATH_C2C,
    NCCL_PATH_PIX,
    NCCL_PATH_PXB,
    NCCL_PATH_P2C,
    NCCL_PATH_PXN,
    NCCL_PATH_PHB,
    NCCL_PATH_SYS,
    NCCL_PATH_COUNT,
};

const char *nccl_path_name(enum nccl_path path);
/* "PIX" or the old numbers "0" to "4" and above (ncclGetLevel); -1: NCCL ignores the text, as it
 * does a name that the version does not have (C2C: 2.26, P2C: 2.27). */
int nccl_level_parse(const char *text, uint32_t version);
/* "2.28.9": 22809; 0 when it is no version. A missing patch counts as 0. */
uint32_t nccl_version_parse(const char *text);

enum nccl_policy { NCCL_DEVS_AUTO = 0, NCCL_DEVS_ALL, NCCL_DEVS_MAX }; /* NCCL_NETDEVS_POLICY */

/* What tells how near a GPU and a NIC are, the first of these. */
enum pair_fact {
    PAIR_BY_FILE = 1, /* the topology file that NCCL is given */
    PAIR_BY_SYSFS,    /* the pod's own */
    PAIR_BY_ROOT,     /* the same PCIe root; switches below it are in no slice */
    PAIR_BY_NAMES,    /* GKE's, of NICs */
    PAIR_BY_NUMA,
};

struct nccl_model {
    uint32_t version;
    uint32_t gpus, nics;          /* in PCI order */
    uint32_t nvml[NCCL_GPUS_MAX]; /* index of the GPU among those that the container can open */
    bool c2c;                     /* GPUs hang off their CPU by a chip-to-chip link */
    bool nvlink;                  /* between all the GPUs */
    bool gdr;                     /* GPU, driver and NICs can do GPUDirect RDMA */
    bool pxn;                     /* NCCL_PXN_DISABLE is not 1 */
    int gdr_c2c;                  /* NCCL_NET_GDR_C2C; -1: the version's default */
    int pxn_c2c;                  /* NCCL_PXN_C2C; -1 */
    int gdr_level;                /* NCCL_NET_GDR_LEVEL; -1 */
    enum nccl_policy policy;
    uint32_t policy_max;
    double inter_socket;                           /* GB/s */
    double nic_gbs[NCCL_NICS_MAX];                 /* GB/s of the link */
    uint8_t classes[NCCL_GPUS_MAX][NCCL_NICS_MAX]; /* PIX, PXB, PHB or SYS */
    uint8_t facts[NCCL_GPUS_MAX][NCCL_NICS_MAX];   /* enum pair_fact: what tells the class */
    /* of a PHB: two host bridges of one NUMA node, which nvidia-smi and drarun topo call NODE */
    bool nodes[NCCL_GPUS_MAX][NCCL_NICS_MAX];
};

/* The path's name in the words of nvidia-smi and drarun topo: NODE for a PHB over two host bridges.
 */
const char *nccl_model_path_name(const struct nccl_model *model, size_t gpu, size_t nic,
                                 enum nccl_path path);

struct nccl_use {
    uint8_t nic, path;
    bool gdr;
};

struct nccl_result {
    uint8_t count[NCCL_GPUS_MAX];
    struct nccl_use use[NCCL_GPUS_MAX][NCCL_NICS_MAX]; /* in the order of the channels */
};

/* Does a chip-to-chip path count for GPUDirect RDMA (NCCL_NET_GDR_C2C, or the version's default)?
 */
bool nccl_model_c2c(const struct nccl_model *model);
/* gpus and nics are at most the maxima; with nics 0 every count is 0. */
void nccl_model_run(const struct nccl_model *model, struct nccl_result *ret_result);

#endif
