/* SPDX-License-Identifier: Apache-2.0 */
/* Network devices of a namespace: found by what stays the same wherever they are, read, changed. */
#ifndef DRARUN_ATTACH_LINK_H
#define DRARUN_ATTACH_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include "plugin/attach/ip_prefix.h"
#include "plugin/attach/netlink.h"

struct link {
    int index;
    char name[IFNAMSIZ];
    char kind[16];   /* "veth", "vrf", ...; "": a physical one */
    char parent[24]; /* as the kernel names its device: "0000:8f:00.0", "virtio0"; "": none */
    struct hw_addr hw, permanent;
    uint32_t mtu, gso, gro, gso4, gro4;
    uint32_t vrf_table; /* of a VRF */
    int master;         /* index of the device that it belongs to, or 0 */
    int peer, peer_ns;  /* of a virtual one: index of the other end or the one below it, 0: none;
                           that one's namespace as this one numbers it, -1: this one */
    bool up, xdp;       /* xdp: a program is attached */
    bool by_driver; /* parent is what the driver says, since the kernel does not (before 5.14) */
};

/* One answer of the kernel about a link; fd: a socket of the namespace that it is in. False: it is
 * about something else. */
bool link_take(struct nlmsghdr *answer, int fd, struct link *ret);

struct link_wanted {
    const char *parent;      /* "": by hardware address */
    struct hw_addr mac, now; /* as it was made; as a claim may have changed it, which finds it under
                                its parent or its name alone, since a pod chooses it */
    const char *name; /* decides between several that have the same, as ports of a function do */
};

/* Pure. */
bool link_fits(const struct link *link, const struct link_wanted *wanted);

typedef void (*link_fn)(const struct link *link, void *arg);

/* Calls fn with each device of the namespace that n speaks to; with some twice where the list
 * changes while it is read. */
int link_each(struct netlink *n, link_fn fn, void *arg, struct drarun_error *err);
/* 1 with *ret filled, 0 when there is none; -EEXIST when several are and none has the name. */
int link_find(struct netlink *n, const struct link_wanted *wanted, struct link *ret,
              struct drarun_error *err);
int link_by_name(struct netlink *n, const char *name, struct link *ret, struct drarun_error *err);
int link_by_index(struct netlink *n, int index, struct link *ret, struct drarun_error *err);

/* Waits until a time of clock_ms() for it to appear; as link_find. n speaks to our own network
 * namespace. */
int link_await(struct netlink *n, const struct link_wanted *wanted, int64_t until_ms,
               struct link *ret, struct drarun_error *err);

struct link_change {
    const char *name;  /* NULL: stays */
    uint32_t mtu;      /* 0: stays, as below */
    struct hw_addr hw; /* .len 0: stays */
    uint32_t gso, gro, gso4, gro4;
    int master;  /* -1: stays */
    int ns;      /* -1: stays */
    int up;      /* -1: stays; 0, 1 */
    bool no_xdp; /* takes the XDP program off */
};

#define LINK_CHANGE_NONE                                                                           \
    {                                                                                              \
        .master = -1, .ns = -1, .up = -1                                                           \
    }

/* In one message. The kernel moves first and sets then: after a failure the device may be in the
 * other namespace all the same. A move takes the device down. */
int link_change(struct netlink *n, int index, const struct link_change *change,
                struct drarun_error *err);

/* One that is virtual. What is not there is deleted. */
int link_delete(struct netlink *n, int index, struct drarun_error *err);

#endif
