/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine, a pod or a captured tree shows of its GPUs, NICs, NUMA nodes and limits, from
 * sysfs, procfs and /dev below a directory. Missing pieces are "not known", never guessed; what is
 * broken or hostile is left out and told in `warnings`. All arrays are the host's: valid until
 * host_done. No thread of its own, nothing kept: two hosts may be read at once.
 * Sources: Linux Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-infiniband, sysfs-class-net;
 * NVIDIA's driver README, chapter "/proc interface"; docs/design/013-topology.md. */
#ifndef DRARUN_TOPO_HOST_H
#define DRARUN_TOPO_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/topo/pci.h"

#define TOPO_NONE SIZE_MAX /* no such index */
#define TOPO_NAME_MAX 64   /* of a device, with its NUL (IB_DEVICE_NAME_MAX) */
#define TOPO_WARNINGS_MAX 64u

enum topo_tri { TOPO_UNKNOWN = 0, TOPO_NO, TOPO_YES };

struct topo_numa {
    uint32_t id;
    char *cpulist; /* as the kernel writes it, "0-55,112-167"; "" for a node without CPUs */
};

/* A PCI function that matters here: GPU, NIC, NVSwitch, or a bridge above one. */
struct topo_pci {
    struct pci_place place;
    uint32_t class_code;                                         /* 24 bits; 0: not known */
    uint32_t vendor, device, subsystem_vendor, subsystem_device; /* 0: not known */
    uint32_t speed_mts, max_speed_mts; /* of one lane, mega-transfers a second; 0: not known */
    uint32_t width, max_width;         /* lanes; 0: not known */
};

struct topo_gpu {
    size_t pci;           /* index into pci */
    const char *vendor;   /* "NVIDIA", "AMD", "Intel", or "other"; static */
    char *product, *uuid; /* NULL: not known */
    int32_t minor;        /* N of /dev/nvidiaN; -1: not known */
    enum topo_tri usable; /* its node is under /dev: this pod was given it */
    char *hip; /* AMD: its numbers in ROCm's order, "3", of its partitions "6,7"; NULL: not known */
};

enum topo_link { TOPO_LINK_UNKNOWN = 0, TOPO_LINK_IB, TOPO_LINK_ETHERNET, TOPO_LINK_OTHER };
enum topo_gid_type { TOPO_GID_UNKNOWN = 0, TOPO_GID_IB, TOPO_GID_ROCE1, TOPO_GID_ROCE2 };

struct topo_gid {
    uint32_t index;
    uint8_t bytes[16];
    enum topo_gid_type type;    /* some kernels tell it for other network namespaces, too */
    char netdev[TOPO_NAME_MAX]; /* ""; as type */
    bool elsewhere;             /* its netdev is known to be outside this network namespace */
};

struct topo_port {
    uint32_t number;
    enum topo_tri active;
    char state[16];        /* "ACTIVE", "DOWN"; "": not known */
    char phys_state[32];   /* "LinkUp", "Polling"; "": not known */
    enum topo_link link;   /* EFA says "Unspecified": OTHER */
    uint32_t rate_mbps;    /* of all lanes; 0: not known */
    uint32_t lanes;        /* 0: not known */
    char lane_speed[8];    /* of one lane, "NDR"; "": not known */
    uint32_t lid;          /* 0: none, as with Ethernet, or not known */
    uint32_t mtu, max_mtu; /* bytes of payload; 0: not known: sysfs does not say */
    struct topo_gid *gids; /* those that are set, by index */
    size_t gid_count;
};

struct topo_rdma_limits { /* 0: not known: sysfs does not say */
    uint32_t qps, cqs, mrs;
    uint64_t mr_bytes; /* of one memory region */
};

struct topo_rdma {
    char name[TOPO_NAME_MAX];           /* "mlx5_0" */
    size_t pci;                         /* TOPO_NONE: no PCI device (software RDMA), or not known */
    char *node_guid, *firmware, *board; /* NULL: not known */
    char subfunction[TOPO_NAME_MAX];    /* whose it is, "mlx5_core.sf.4"; "": the function's */
    char uverbs[TOPO_NAME_MAX];         /* "uverbs0"; "": not known */
    enum topo_tri usable; /* its node is under /dev/infiniband: this pod was given it */
    bool iwarp;           /* addresses are its interface's, without GIDs of them */
    struct topo_rdma_limits limits;
    struct topo_port *ports;
    size_t port_count;
};

struct topo_netdev {
    char name[TOPO_NAME_MAX];
    size_t pci;          /* TOPO_NONE: virtual, or not known */
    char mac[64];        /* InfiniBand's has 20 bytes; "": not known */
    uint32_t mtu;        /* 0: not known */
    uint32_t speed_mbps; /* 0: not known, or down */
    enum topo_tri up;
    bool representor; /* it stands for a function of another machine or pod (port_name.h) */
    char subfunction[TOPO_NAME_MAX]; /* as topo_rdma has it */
    /* Of an interface of IPoIB's for a partition (P_Key): the HCA's own, which it is on; "": it is
     * none, or that one is in another network namespace. */
    char partition_of[TOPO_NAME_MAX];
    uint32_t ifindex, iflink; /* of IPoIB's alone; 0: not known */
    /* The interface of the default route that this one is, or is a part of: a port of its bond, the
     * virtual function below a synthetic NIC, what a VLAN is on; "": none. Read with host_read. */
    char uplink[TOPO_NAME_MAX];
};

struct topo_limits {
    enum topo_tri memlock_known;
    uint64_t memlock;          /* bytes, the soft limit; UINT64_MAX: unlimited */
    enum topo_tri ipc_lock;    /* CAP_IPC_LOCK: memlock does not count */
    int64_t uid;               /* effective; -1: not known */
    enum topo_tri shm_mounted; /* UNKNOWN: /dev/shm is no mount of its own, as in a captured tree */
    bool shm_memory;           /* it is a tmpfs */
    uint64_t shm_bytes, shm_free;
    char *cpuset; /* effective CPU list of our cgroup; NULL: not known */
    enum topo_tri memory_limited;
    uint64_t memory_max; /* bytes, of our cgroup */
    enum topo_tri cpu_limited;
    uint32_t cpu_millis; /* thousandths of a CPU, of our cgroup */
};

struct topo_host {
    struct topo_numa *numas;
    size_t numa_count;
    struct topo_pci *pci; /* by address */
    size_t pci_count;
    struct topo_gpu *gpus; /* by address, which is NVML's order */
    size_t gpu_count;
    /* by address, the function's own first, then by name; those without PCI last */
    struct topo_rdma *rdmas;
    size_t rdma_count;
    struct topo_netdev *netdevs; /* by name */
    size_t netdev_count;
    size_t nvswitch_count;
    struct topo_limits limits;
    char *cpus;                    /* online ones; NULL: not known */
    char *arch;                    /* "x86_64", "arm64"; NULL: not known */
    char *cpu_vendor;              /* "GenuineIntel"; NULL: not known */
    int32_t cpu_family, cpu_model; /* x86; -1: not known */
    char *machine;                 /* DMI: vendor and product; NULL: not known */
    char *kernel;                  /* release; NULL: not known */
    char *driver;                  /* NVIDIA's driver version; NULL: not known */
    enum topo_tri driver_open;     /* NVIDIA's open kernel modules */
    enum topo_tri peermem;         /* nvidia_peermem or nv_peer_mem is loaded */
    enum topo_tri dmabuf;          /* inferred: the open modules on Linux 5.12 or newer */
    enum topo_tri c2c;             /* inferred from the product: GPUs with a chip-to-chip link */
    enum topo_tri rdma_cm;         /* /dev/infiniband/rdma_cm */
    size_t nvidia_nodes;           /* how many /dev/nvidiaN */
    uint32_t *imex_channels;       /* N of /dev/nvidia-caps-imex-channels/channelN, ascending */
    size_t imex_count;
    bool partial; /* from attributes: NUMA nodes and devices may be missing, CPUs and limits are */
    struct strlist warnings; /* one line each, no control characters; at most TOPO_WARNINGS_MAX */
};

/* rootfd: a directory that stands for "/" (it may be O_PATH); -1: "/" itself. Fails only for a root
 * that cannot be opened and when memory runs out; a tree without sys gives an empty host. */
int host_read(int rootfd, struct topo_host *ret_host, struct drarun_error *err);
/* The machine, its GPUs, RDMA devices and interfaces alone, a quarter faster: of bridges nothing
 * but their place, no NUMA nodes, limits and counts of nodes. For who reads again and again. */
int host_read_devices(int rootfd, struct topo_host *ret_host, struct drarun_error *err);
void host_done(struct topo_host *host);

/* Puts pci, gpus and rdmas into the order that is promised above, for a host that is made of
 * attributes. -ENOMEM. */
int host_arrange(struct topo_host *host, struct drarun_error *err);

/* The PCIe link has fewer lanes than device and slot could have or, but for a GPU, which slows it
 * down while it does nothing, a lower speed. False where that is not known. */
bool topo_pci_is_narrow(const struct topo_pci *pci, bool gpu);

/* Index into pci, or TOPO_NONE. */
size_t host_find_pci(const struct topo_host *host, struct pci_addr addr);
/* The netdev on the same function, or sub-function, as an RDMA device, first by name, neither a
 * representor nor of a partition; NULL: none, or not visible. */
const struct topo_netdev *host_netdev_of(const struct topo_host *host,
                                         const struct topo_rdma *rdma);
/* One of its GIDs is of the interface. */
bool host_has_gid_of(const struct topo_rdma *rdma, const char *netdev);
/* The uplink that the interface of an RDMA device is, or is a part of; NULL: none is known. */
const char *host_uplink_of(const struct topo_host *host, const struct topo_rdma *rdma);
/* The NUMA node of a function; where that is not known, the only one of the machine; -1: unknown.
 */
int32_t host_numa_of(const struct topo_host *host, size_t pci);
/* Path between two functions (indices into pci; TOPO_NONE gives UNKNOWN). c2c as in pci_path. */
enum topo_path host_path(const struct topo_host *host, size_t a, size_t b, bool c2c);

const char *topo_tri_name(enum topo_tri tri);    /* "unknown", "no", "yes" */
const char *topo_link_name(enum topo_link link); /* "unknown", "InfiniBand", "Ethernet", ... */
const char *topo_gid_type_name(enum topo_gid_type type); /* "unknown", "IB", "RoCE v1", "RoCE v2" */

#endif
