/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/topo/route_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/root.h"

#define ROUTES_SIZE ((size_t)16 << 20) /* of a node with some hundred thousand routes */

/* Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT; addresses as a word of
 * this machine's byte order */
static bool parse_ipv4(const char *line, struct topo_route *route)
{
    uint32_t destination, gateway, mask;
    if (sscanf(line, "%63s %8x %8x %4x %*d %*d %u %8x", route->name, &destination, &gateway,
               &route->flags, &route->metric, &mask) != 6)
        return false;
    memcpy(route->destination, &destination, sizeof destination);
    memcpy(route->gateway, &gateway, sizeof gateway);
    route->bits = (unsigned)__builtin_popcount(mask);
    return true;
}

static bool parse_hex(const char *text, uint8_t ret_bytes[16])
{
    for (size_t i = 0; i < 16; i++)
        if (sscanf(text + 2 * i, "%2hhx", &ret_bytes[i]) != 1)
            return false;
    return true;
}

/* destination prefix-length source prefix-length gateway metric references use flags device */
static bool parse_ipv6(const char *line, struct topo_route *route)
{
    char destination[33], gateway[33];
    return sscanf(line, "%32[0-9a-f] %2x %*32s %*2x %32[0-9a-f] %8x %*8x %*8x %8x %63s",
                  destination, &route->bits, gateway, &route->metric, &route->flags,
                  route->name) == 6 &&
           strlen(destination) == 32 && strlen(gateway) == 32 && route->bits <= 128 &&
           parse_hex(destination, route->destination) && parse_hex(gateway, route->gateway);
}

bool route_parse(const char *text, bool ipv6, struct topo_route *ret_route)
{
    char line[256];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    *ret_route = (struct topo_route){.ipv6 = ipv6};
    return (ipv6 ? parse_ipv6 : parse_ipv4)(line, ret_route);
}

bool route_covers(const struct topo_route *route, const uint8_t *address)
{
    unsigned whole = route->bits / 8, rest = route->bits % 8;
    uint8_t mask = (uint8_t)(0xff << (8 - rest));
    return memcmp(route->destination, address, whole) == 0 &&
           (rest == 0 || ((route->destination[whole] ^ address[whole]) & mask) == 0);
}

static bool leads_somewhere(const struct topo_route *route)
{
    return (route->flags & ROUTE_UP) && !(route->flags & ROUTE_REJECT) &&
           strcmp(route->name, "lo") != 0;
}

static bool add_all(const char *text, bool ipv6, struct topo_routes *routes)
{
    size_t cap = routes->count;
    struct topo_route route;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (!route_parse(line, ipv6, &route) || !leads_somewhere(&route))
            continue;
        struct topo_route *more = array_room(routes->list, routes->count, &cap, sizeof *more);
        if (!more)
            return false;
        routes->list = more;
        routes->list[routes->count++] = route;
    }
    return true;
}

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "routes: out of memory");
}

int routes_read_text(int root, bool ipv6, struct buf *ret_text, struct drarun_error *err)
{
    root_read_whole(root, ipv6 ? "proc/net/ipv6_route" : "proc/net/route", ROUTES_SIZE, ret_text);
    buf_add_str(ret_text, "");
    return ret_text->failed ? no_memory(err) : 0;
}

static int add_table(int root, bool ipv6, struct topo_routes *routes, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    int rc = routes_read_text(root, ipv6, &text, err);
    if (rc < 0)
        return rc;
    return add_all(text.data, ipv6, routes) ? 0 : no_memory(err);
}

int routes_read(int root, struct topo_routes *ret_routes, struct drarun_error *err)
{
    struct topo_routes routes = {0};
    int rc = add_table(root, false, &routes, err);
    if (rc == 0)
        rc = add_table(root, true, &routes, err);
    if (rc < 0)
        routes_done(&routes);
    else
        *ret_routes = routes;
    return rc;
}

void routes_done(struct topo_routes *routes)
{
    free(routes->list);
    *routes = (struct topo_routes){0};
}

const struct topo_route *routes_find(const struct topo_routes *routes, bool ipv6,
                                     const uint8_t *address)
{
    const struct topo_route *best = NULL;
    for (size_t i = 0; i < routes->count; i++) {
        const struct topo_route *route = &routes->list[i];
        if (route->ipv6 == ipv6 && route_covers(route, address) &&
            (!best || route->bits > best->bits ||
             (route->bits == best->bits && route->metric < best->metric)))
            best = route;
    }
    return best;
}
