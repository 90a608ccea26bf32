/* SPDX-License-Identifier: Apache-2.0 */
/* One device of this node as the plugin knows it: what it is, where it sits, how the host and a
 * container reach it. Filled by discovery (node_devices.h); read by what publishes, prepares and
 * attaches. A plain value but for `gids`: copied by assignment, it stays valid as long as its list.
 * A device is one GPU, one MIG device, or one port of a NIC. Its attributes and their sources:
 * docs/design/021-node-devices.md. Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_NODE_DEVICE_H
#define DRARUN_PLUGIN_DISCOVER_NODE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/topo/host.h"

#define NODE_DRIVER_GPU "gpu.drarun.dev"
#define NODE_DRIVER_NIC "nic.drarun.dev"
#define NODE_DEVICE_NAME_MAX 64 /* a DNS label of at most 63 characters, with its NUL */
#define NODE_CHARDEVS_MAX 6u
#define NODE_FAULTS_MAX 4u

enum node_device_kind { NODE_DEVICE_GPU = 1, NODE_DEVICE_MIG, NODE_DEVICE_NIC };

/* A character device of the host that a container needs to use the device. */
struct node_chardev {
    char path[64];         /* "/dev/infiniband/uverbs0", the same in a container */
    uint32_t major, minor; /* as sysfs says; both 0: not known */
};

struct node_gpu {
    char uuid[64];           /* "GPU-...", of a MIG device "MIG-..."; "": not known */
    char parent_uuid[64];    /* of a MIG device */
    char mig_profile[32];    /* "1g.5gb"; "" for a whole GPU */
    int32_t minor;           /* N of /dev/nvidiaN; -1: not known */
    int32_t mig_gi, mig_ci;  /* GPU and compute instance; -1: none */
    char product[96];        /* "NVIDIA B200"; "": not known */
    char architecture[32];   /* "Blackwell"; these four come from NVML alone */
    char compute[16];        /* CUDA compute capability, "10.0.0" */
    char driver_version[32]; /* "570.133.20", as the driver writes it */
    char cuda_version[16];   /* "12.8.0" */
    uint64_t memory;         /* bytes; 0: not known */
    uint32_t nvlinks;        /* active NVLinks; 0: none, or not known */
    bool mig_mode;           /* MIG is on: the whole GPU is not published */
    bool closed;             /* NVML counts it and cannot open it */
    char vendor[16];         /* "NVIDIA", "AMD", ... */
};

struct node_netdev {
    char name[16];     /* on the host; "": the device has no interface, or it is in a pod now */
    uint32_t ifindex;  /* 0: not known */
    uint32_t arp_type; /* ARPHRD_*: 1 Ethernet, 32 InfiniBand */
    char kind[16];     /* "veth", "dummy", ... of a virtual one; "" of hardware */
    char mac[64];      /* InfiniBand's has 20 bytes; "": not known */
    uint32_t mtu;      /* 0: not known */
    char ipv4[64], ipv6[64]; /* global addresses with their prefix lengths, joined by commas; "" */
    uint32_t speed_mbps;     /* 0: not known, or down */
    enum topo_tri up;        /* operational state: UNKNOWN while it is set down */
    enum topo_tri carrier;   /* only known while it is set up */
};

struct node_rdma {
    char name[TOPO_NAME_MAX]; /* "mlx5_0"; "": none */
    uint32_t port;            /* this device's port, from 1 */
    uint32_t ports;           /* of the RDMA device: with several, others share its nodes */
    enum topo_link link;
    enum topo_tri active;
    char state[16];        /* "ACTIVE", "DOWN"; "": not known */
    uint32_t rate_mbps;    /* 0: not known */
    char guid[32];         /* node GUID; "": not known */
    char firmware[32];     /* "28.41.1000" */
    char board[32];        /* board_id, "MT_0000000838" */
    struct topo_gid *gids; /* those of the port that are set; owned by the list of devices */
    size_t gid_count;
    struct node_chardev chardevs[NODE_CHARDEVS_MAX]; /* uverbsN; umadN, issmN of its port
                                                        (managementNodes); rdma_cm */
    size_t chardev_count;
};

/* SR-IOV: what a function is. */
enum node_sriov { NODE_SRIOV_NONE = 0, NODE_SRIOV_PF, NODE_SRIOV_VF };

struct node_pci {
    bool known; /* false: a device without a PCI function, as a veth */
    struct pci_addr addr;
    char bus_id[PCI_ADDR_TEXT];      /* "0000:8f:00.0" */
    char root[PCI_ROOT_TEXT];        /* "pci0000:8c"; "": not known */
    char pcie_switch[PCI_ADDR_TEXT]; /* the upstream port of the nearest switch; "": none */
    int32_t numa;                    /* as sysfs says, -1: not known */
    uint32_t vendor, device;
    char driver[32]; /* kernel driver, "mlx5_core"; "": not known, or none */
    enum node_sriov sriov;
    char pf[PCI_ADDR_TEXT]; /* of a VF: its PF */
    uint32_t pf_device;     /* which model that is; 0: not known */
    uint32_t vfs, vfs_max;  /* of a PF: enabled, possible */
};

/* What makes a device unfit for work: it is published with a taint for each. */
struct node_fault {
    char key[64];   /* of the taint: "drarun.dev/link-down", "drarun.dev/xid", "drarun.dev/lost" */
    char value[64]; /* "79"; "" */
    bool execute;   /* NoExecute: running pods are ended; else NoSchedule */
    char text[96];  /* for people and the health stream */
};

struct node_device {
    enum node_device_kind kind;
    char name[NODE_DEVICE_NAME_MAX]; /* in slices and claims: stable over boots and attaches */
    struct node_pci pci;
    struct node_gpu gpu;                             /* GPU and MIG alone */
    struct node_netdev netdev;                       /* NIC alone */
    struct node_rdma rdma;                           /* NIC alone */
    struct node_chardev chardevs[NODE_CHARDEVS_MAX]; /* of a GPU: nvidiaN, nvidiactl, uvm */
    size_t chardev_count;
    uint32_t port;  /* of a NIC: its port on the function, from 0 */
    int32_t rail;   /* of a NIC: its number among the node's of its model, of a VF its PF's;
                       -1: none */
    bool lost;      /* it, or a part of it, was there and is gone, but not into a pod */
    bool away;      /* a part of it is in a pod: that is as it was on the host */
    bool held;      /* a claim has it: it keeps the name by which it was given */
    bool unbound;   /* no driver has it any more: it is remembered, and not offered */
    char used[200]; /* of a NIC: what the host does over it (live_use.h); "": nothing */
    bool included;  /* the configuration's include names it: offered whatever `used` says */
    struct node_fault faults[NODE_FAULTS_MAX];
    size_t fault_count;
};

/* "gpu.drarun.dev" or "nic.drarun.dev". */
const char *node_device_driver(const struct node_device *device);
/* Of a NIC its function alone is here: it has neither an interface nor an RDMA device. */
bool node_device_is_bare(const struct node_device *device);
/* "GPU", "MIG", "NIC" */
const char *node_device_kind_name(enum node_device_kind kind);

#endif
