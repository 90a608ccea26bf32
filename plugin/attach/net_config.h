/* SPDX-License-Identifier: Apache-2.0 */
/* How a claim wants its NIC to be in the pod: the opaque configuration of a network device. Schema
 * and rules are DraNet's (pkg/apis/types.go, validation.go, defaults.go at f258477), and stricter
 * where DraNet lets pass what the kernel refuses later; docs/design/022-attach.md has the
 * differences. A struct owns all of its memory. Pure. */
#ifndef DRARUN_ATTACH_NET_CONFIG_H
#define DRARUN_ATTACH_NET_CONFIG_H

#include <jansson.h>
#include <net/if.h>
#include "lib/doc/reader.h"
#include "plugin/attach/ip_prefix.h"

struct net_interface {
    char name[IFNAMSIZ]; /* in the pod; "": as on the host */
    struct ip_prefix *addresses;
    size_t address_count;
    uint32_t mtu;         /* 0: as on the host */
    struct hw_addr hw;    /* .len 0: as on the host */
    uint32_t gso, gro;    /* the largest segments, bytes; 0: as on the host */
    uint32_t gso4, gro4;  /* the same for IPv4 */
    int32_t arp_ignore;   /* -1: the namespace's default */
    int32_t arp_announce; /* likewise */
    bool no_ebpf;         /* XDP, TC and TCX programs are taken off */
    bool forwarding;
    char vrf[IFNAMSIZ]; /* "": none */
    uint32_t vrf_table; /* set whenever vrf is */
};

struct net_route {
    struct ip_prefix destination;     /* host bits zero */
    struct ip_prefix gateway, source; /* .family 0: none */
    bool link;                        /* scope link, else universe */
    uint32_t table;                   /* 0: main, or the VRF's */
};

struct net_rule {
    struct ip_prefix source, destination; /* .family 0: any */
    uint32_t priority, table;
};

struct net_neighbor {
    struct ip_prefix address;
    struct hw_addr hw;
};

struct net_config {
    struct net_interface interface;
    struct net_route *routes; /* those of scope link first, as gateways need them */
    size_t route_count;
    struct net_rule *rules;
    size_t rule_count;
    struct net_neighbor *neighbors;
    size_t neighbor_count;
    json_t *features; /* ethtool's, by name, true or false; NULL: none */
    json_t *private_flags;
};

#define NET_CONFIG_INIT                                                                            \
    {                                                                                              \
        .interface = {.arp_ignore = -1, .arp_announce = -1 }                                       \
    }

/* Findings go to the node's reader, which decides how strict unknown keys are: use a strict one.
 * Returns 0, or -EINVAL when findings were added and *ret is untouched. The caller frees *ret with
 * net_config_done. */
int net_config_read(const struct reader_node *node, struct net_config *ret);
/* For a device without a network interface, which has nothing to set: the same, and a finding for
 * each part that says something. */
int net_config_read_rdma(const struct reader_node *node);
void net_config_done(struct net_config *config);

/* In the schema's form, with every default set; net_config_read reads it back as the same. A new
 * reference, NULL when out of memory. */
json_t *net_config_json(const struct net_config *config);

/* The name of an interface as the kernel and DraNet take it: 1 to 15 letters, digits, "-", "_" and
 * ".", not "." or "..". name has IFNAMSIZ bytes. */
void net_name_read(const struct reader_node *node, char *name);
/* Reads a list of prefixes; *ret_list is malloc'ed. */
int net_prefixes_read(const struct reader_node *node, struct ip_prefix **ret_list,
                      size_t *ret_count);

#endif
