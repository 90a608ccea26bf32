/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a network namespace from the text of proc(5) net/route (of IPv4, the main table)
 * and net/ipv6_route (of IPv6, all tables). */
#ifndef DRARUN_TOPO_ROUTE_TEXT_H
#define DRARUN_TOPO_ROUTE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* linux/route.h, linux/ipv6_route.h */
#define ROUTE_UP 0x1u
#define ROUTE_GATEWAY 0x2u
#define ROUTE_REJECT 0x200u
#define ROUTE_ADDRCONF 0x40000u /* IPv6: a router advertised it */
#define ROUTE_ANYCAST 0x100000u
#define ROUTE_LOCAL 0x80000000u

struct topo_route {
    char name[64]; /* of the interface */
    bool ipv6;
    uint8_t destination[16], gateway[16]; /* network order, the first 4 bytes of IPv4 */
    unsigned bits;                        /* of the destination's prefix */
    unsigned flags, metric;
};

/* The first line of text. False: it is no route. Pure. */
bool route_parse(const char *text, bool ipv6, struct topo_route *ret_route);
/* Whether an address of the route's IP version lies in its destination. Pure. */
bool route_covers(const struct topo_route *route, const uint8_t *address);

struct topo_routes {
    struct topo_route *list;
    size_t count;
};

/* All of net/route (ipv6: net/ipv6_route) of proc below a root, added to ret_text, whose data is
 * not NULL then; nothing where it cannot be read. -ENOMEM. */
int routes_read_text(int root, bool ipv6, struct buf *ret_text, struct drarun_error *err);

/* Both kinds, those that are up and lead somewhere; without what cannot be read. -ENOMEM. */
int routes_read(int root, struct topo_routes *ret_routes, struct drarun_error *err);
void routes_done(struct topo_routes *routes);

/* The route that an address takes: the longest prefix, then the smallest metric; NULL: none. */
const struct topo_route *routes_find(const struct topo_routes *routes, bool ipv6,
                                     const uint8_t *address);

#endif
