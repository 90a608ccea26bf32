/* SPDX-License-Identifier: Apache-2.0 */
/* The order to attach one NIC to one pod: a JSON file that Prepare writes before the container
 * runtime may ask for it, and that the hook `drarun-attach` and Unprepare read. It says which
 * device (by what stays the same in every namespace), how the pod wants it and how it was on the
 * host. One file per device of a claim; the caller owns the directory. Owns all of its memory. */
#ifndef DRARUN_ATTACH_ORDER_H
#define DRARUN_ATTACH_ORDER_H

#include <limits.h>
#include "drarun/error.h"
#include "plugin/attach/net_config.h"

#define ATTACH_ORDER_VERSION 1
#define ATTACH_ORDER_SIZE_MAX ((size_t)256 << 10)
#define ATTACH_NAME_MAX 254 /* a Kubernetes name, a device of a slice */
#define ATTACH_MARK "DRARUN_NIC_"
#define ATTACH_MARK_MAX (sizeof ATTACH_MARK + 65 + ATTACH_NAME_MAX)

/* A device as the host had it, for taking it back. host_link_read (plugin/attach/host_link.h) fills
 * it from the kernel. */
struct host_link {
    char name[IFNAMSIZ];
    uint32_t mtu;
    bool up;
    bool ebpf; /* it had BPF programs of the host: what is on it afterwards is left alone */
    struct ip_prefix *addresses; /* without link-local ones, which the kernel makes itself */
    size_t address_count;
    struct hw_addr hw;             /* .len 0: not known, left alone */
    uint32_t gso, gro, gso4, gro4; /* 0: not known, left alone */
    json_t *features;              /* what the configuration changes, as it was; may be NULL */
    json_t *private_flags;
};

struct attach_order {
    char claim_namespace[ATTACH_NAME_MAX], claim_name[ATTACH_NAME_MAX], claim_uid[64];
    char device[ATTACH_NAME_MAX]; /* its name in the slice; what messages call it */
    char pci[24];                 /* "0000:8f:00.0", or "" for a virtual device */
    char parent[24]; /* what the kernel calls the interface's device in every namespace: pci, or
                        "virtio0" on such a function, "" where it names none */
    struct hw_addr
        mac;       /* of a virtual device; beside parent it tells ports of one function apart */
    char rdma[64]; /* "mlx5_0", or "" */
    struct host_link host;    /* host.name "": no network interface, the RDMA device alone */
    struct net_config config; /* interface.name is set where host.name is */
    char path[PATH_MAX];      /* of its file, by attach_order_load; no part of the document */
};

/* Opens path under dirfd (openat's meaning; AT_FDCWD and an absolute path will do) without
 * following a link in its last component, and refuses what is not a regular file of the caller's
 * user (root, for the hook) that nobody else may write. Bounded by ATTACH_ORDER_SIZE_MAX, strict.
 * The caller frees *ret with attach_order_done. Errors name the file, place and path. */
int attach_order_load(int dirfd, const char *path, struct attach_order *ret,
                      struct drarun_error *err);
/* The same from text; name stands in messages. Pure. */
int attach_order_parse(const char *name, const char *text, size_t len, struct attach_order *ret,
                       struct drarun_error *err);
void attach_order_done(struct attach_order *order);
void host_link_done(struct host_link *host);

/* The document; attach_order_parse reads it back as the same. A new reference, NULL when out of
 * memory. */
json_t *attach_order_json(const struct attach_order *order);

/* The environment variable by which the hook sees that a container was given the device, its mark:
 * "DRARUN_NIC_UID_DEVICE" with "_" for what such a name cannot have. */
void attach_order_mark(const char *claim_uid, const char *device, char *ret_mark, size_t size);

#endif
