/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/live_use.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/root.h"
#include "lib/topo/route_text.h"
#include "plugin/discover/tc_programs.h"

#define LINES_MAX 100000u /* of a list of sockets or mounts: more are not looked at */
#define ENTRIES_MAX 1024u /* of a class in sysfs */

struct address {
    bool ipv6;
    uint8_t bytes[16]; /* network order, the first 4 of IPv4 */
};

#define ADDRESS_TEXT INET6_ADDRSTRLEN

struct look {
    int root;
    const struct ifaddrs *addresses;
    const struct strlist *interfaces;
    struct topo_routes routes;
    struct host_use *use;
};

/* The reason becomes part of events, whatever a mount is called. */
static void add(struct look *look, const char *name, const char *reason)
{
    char text[200];
    if (strlist_has(&look->use->names, name) || !strlist_has(look->interfaces, name))
        return;
    snprintf(text, sizeof text, "%s", reason);
    for (char *p = text; *p; p++)
        if (!isprint((unsigned char)*p))
            *p = '?';
    strlist_add(&look->use->names, name);
    strlist_add(&look->use->reasons, text);
}

/* ---- addresses ---- */

static const char *address_text(bool ipv6, const uint8_t *bytes, char out[ADDRESS_TEXT])
{
    return inet_ntop(ipv6 ? AF_INET6 : AF_INET, bytes, out, ADDRESS_TEXT) ? out : "?";
}

/* False: of no IP version. Those of one link are everywhere the same, and no interface's own. */
static bool address_of(const struct sockaddr *sa, struct address *ret)
{
    struct address address = {.ipv6 = sa && sa->sa_family == AF_INET6};
    if (!sa || (sa->sa_family != AF_INET && !address.ipv6))
        return false;
    if (address.ipv6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        memcpy(address.bytes, six, sizeof *six);
        if (IN6_IS_ADDR_LINKLOCAL(six))
            return false;
    } else {
        memcpy(address.bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
    }
    *ret = address;
    return true;
}

/* The interface with this address, NULL: none. */
static const char *owner_of(const struct look *look, const struct address *wanted)
{
    struct address own;
    for (const struct ifaddrs *i = look->addresses; i; i = i->ifa_next)
        if (address_of(i->ifa_addr, &own) && own.ipv6 == wanted->ipv6 &&
            memcmp(own.bytes, wanted->bytes, sizeof own.bytes) == 0)
            return i->ifa_name;
    return NULL;
}

/* ---- routes ---- */

static bool is_default(const struct topo_route *route)
{
    return route->bits == 0;
}

static bool is_host_route(const struct topo_route *route)
{
    return route->bits == (route->ipv6 ? 128 : 32);
}

static bool same_link(const struct topo_route *a, const struct topo_route *b)
{
    return a->ipv6 == b->ipv6 && strcmp(a->name, b->name) == 0;
}

/* A prefix that an address brings with it, without a gateway. */
static bool is_connected(const struct look *look, const struct topo_route *route)
{
    struct address own;
    if (route->flags & ROUTE_GATEWAY)
        return false;
    bool known = false;
    for (const struct ifaddrs *i = look->addresses; i; i = i->ifa_next) {
        if (strcmp(i->ifa_name, route->name) != 0 || !address_of(i->ifa_addr, &own) ||
            own.ipv6 != route->ipv6)
            continue;
        known = true;
        if (route_covers(route, own.bytes))
            return true;
    }
    return !look->addresses || (route->ipv6 && !known); /* fe80::/64 alone */
}

static bool is_within_connected(const struct look *look, const struct topo_route *route)
{
    for (size_t i = 0; i < look->routes.count; i++) {
        const struct topo_route *other = &look->routes.list[i];
        if (same_link(other, route) && other->bits <= route->bits && !is_host_route(other) &&
            !is_default(other) && is_connected(look, other) &&
            route_covers(other, route->destination))
            return true;
    }
    return false;
}

/* "192.168.1.1 dev nic scope link": how the gateway is reached of an address that is a /32. */
static bool is_way_to_gateway(const struct look *look, const struct topo_route *route)
{
    for (size_t i = 0; i < look->routes.count && is_host_route(route); i++) {
        const struct topo_route *other = &look->routes.list[i];
        if (same_link(other, route) && (other->flags & ROUTE_GATEWAY) &&
            route_covers(route, other->gateway))
            return true;
    }
    return false;
}

/* And "192.168.1.0/24 via 192.168.1.1 dev nic", the network itself. */
static bool is_network_by_gateway(const struct look *look, const struct topo_route *route)
{
    if (!(route->flags & ROUTE_GATEWAY) || !route_covers(route, route->gateway))
        return false;
    for (size_t i = 0; i < look->routes.count; i++) {
        const struct topo_route *other = &look->routes.list[i];
        if (same_link(other, route) && !(other->flags & ROUTE_GATEWAY) && is_host_route(other) &&
            route_covers(other, route->gateway))
            return true;
    }
    return false;
}

static bool is_ordinary(const struct topo_route *route)
{
    const uint8_t *to = route->destination;
    return route->ipv6 && ((route->flags & (ROUTE_LOCAL | ROUTE_ANYCAST | ROUTE_ADDRCONF)) ||
                           to[0] == 0xff || (to[0] == 0xfe && (to[1] & 0xc0) == 0x80));
}

static bool is_use(const struct look *look, const struct topo_route *route)
{
    if (is_ordinary(route))
        return false;
    /* a default route whatever its metric: the host falls back to it when a better one is gone */
    return is_default(route) ||
           !(is_connected(look, route) || is_within_connected(look, route) ||
             is_way_to_gateway(look, route) || is_network_by_gateway(look, route));
}

static void describe_route(const struct topo_route *route, char *ret_text, size_t size)
{
    char to[ADDRESS_TEXT], by[ADDRESS_TEXT], via[ADDRESS_TEXT + 8] = "";
    if (route->flags & ROUTE_GATEWAY)
        snprintf(via, sizeof via, " via %s", address_text(route->ipv6, route->gateway, by));
    if (is_default(route))
        snprintf(ret_text, size, "it has a default route%s (metric %u)", via, route->metric);
    else
        snprintf(ret_text, size, "it has a route to %s/%u%s",
                 address_text(route->ipv6, route->destination, to), route->bits, via);
}

static void look_at_routes(struct look *look)
{
    for (size_t i = 0; i < look->routes.count; i++) {
        const struct topo_route *route = &look->routes.list[i];
        char reason[200];
        if (!strlist_has(look->interfaces, route->name) || !is_use(look, route))
            continue;
        describe_route(route, reason, sizeof reason);
        add(look, route->name, reason);
    }
}

/* ---- what is stored elsewhere ---- */

/* Over which of the interfaces an address is reached, or whose it is; NULL: none. */
static const char *way_of(const struct look *look, const struct address *address)
{
    const char *own = owner_of(look, address);
    if (own)
        return own;
    const struct topo_route *route = routes_find(&look->routes, address->ipv6, address->bytes);
    return route ? route->name : NULL;
}

static bool parse_address(const char *text, struct address *ret)
{
    struct address address = {.ipv6 = true};
    char four[16];
    if (inet_pton(AF_INET6, text, address.bytes) == 1) {
        *ret = address;
        return true;
    }
    address = (struct address){0};
    snprintf(four, sizeof four, "%.*s", (int)strcspn(text, ":"), text); /* "10.5.0.9:6789:" */
    if (strchr(four, '.') == NULL || inet_pton(AF_INET, four, address.bytes) != 1)
        return false;
    *ret = address;
    return true;
}

/* Looks at each address in a text: "[fd00::9]:/export", "10.5.0.9@tcp:/fs", "addr=10.5.0.9". */
static void look_at_text(struct look *look, const char *text, const char *what)
{
    static const char between[] = ",=/@[]() \t\n";
    char token[64], shown[ADDRESS_TEXT], reason[300];
    struct address address;
    for (; *text; text += strcspn(text, between)) {
        text += strspn(text, between);
        size_t length = strcspn(text, between);
        if (length == 0 || length >= sizeof token)
            continue;
        snprintf(token, sizeof token, "%.*s", (int)length, text);
        if (!parse_address(token, &address))
            continue;
        const char *way = way_of(look, &address);
        snprintf(reason, sizeof reason, "%s is reached through it (%s)", what,
                 address_text(address.ipv6, address.bytes, shown));
        if (way)
            add(look, way, reason);
    }
}

static bool is_network_file_system(const char *type)
{
    static const char *const known[] = {"nfs",    "nfs4", "cifs", "smb3",           "ceph",
                                        "lustre", "9p",   "afs",  "fuse.glusterfs", "fuse.ceph"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(type, known[i]) == 0)
            return true;
    return false;
}

typedef void (*line_fn)(struct look *look, char *line);

static void each_line(struct look *look, const char *path, line_fn fn)
{
    cleanup_close int fd = root_open(look->root, path, O_RDONLY, NULL);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    cleanup_free char *line = NULL;
    size_t size = 0;
    if (!file) {
        look->use->names.failed |= fd >= 0; /* what it has in use would go unseen */
        return;
    }
    take_fd(&fd);
    size_t lines = 0;
    for (; lines < LINES_MAX && getline(&line, &size, file) >= 0; lines++)
        fn(look, line);
    look->use->names.failed |= lines < LINES_MAX && !feof(file) && !ferror(file);
    fclose(file);
}

/* source target type options */
static void look_at_mount(struct look *look, char *line)
{
    char *rest = NULL, what[160];
    const char *source = strtok_r(line, " ", &rest), *target = strtok_r(NULL, " ", &rest);
    const char *type = strtok_r(NULL, " ", &rest), *options = strtok_r(NULL, " ", &rest);
    if (!options || !is_network_file_system(type))
        return;
    snprintf(what, sizeof what, "the %s mount %.100s", type, target);
    look_at_text(look, source, what);
    look_at_text(look, options, what);
}

/* Block devices of other machines, which may be reached without a socket (RDMA). */
static void look_at_class(struct look *look, const char *folder, const char *file)
{
    struct strlist names = STRLIST_INIT;
    char path[200], text[512], what[100];
    int rc = root_list(look->root, folder, ENTRIES_MAX, &names, NULL);
    look->use->names.failed |= rc == -ENOMEM;
    for (size_t i = 0; rc >= 0 && i < names.count; i++) {
        snprintf(path, sizeof path, "%s/%.64s/%s", folder, names.items[i], file);
        snprintf(what, sizeof what, "%.64s", names.items[i]);
        if (root_read(look->root, path, text, sizeof text) > 0)
            look_at_text(look, text, what);
    }
    strlist_done(&names);
}

/* ---- sockets ---- */

enum { TCP_CONNECTED = 1, TCP_TIME_WAITS = 6, TCP_CLOSED = 7, TCP_LISTENS = 10 };

/* "0200050A:0801" or 32 digits: words of this machine's byte order, and the port. */
static bool parse_end(const char *text, struct address *ret, unsigned *ret_port)
{
    struct address address = {0};
    size_t digits = strspn(text, "0123456789ABCDEFabcdef");
    if ((digits != 8 && digits != 32) || text[digits] != ':' ||
        sscanf(text + digits + 1, "%4x", ret_port) != 1)
        return false;
    for (size_t i = 0; i < digits / 8; i++) {
        uint32_t word;
        if (sscanf(text + 8 * i, "%8x", &word) != 1)
            return false;
        memcpy(address.bytes + 4 * i, &word, sizeof word);
    }
    address.ipv6 = digits == 32;
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (address.ipv6 && memcmp(address.bytes, mapped, sizeof mapped) == 0) {
        struct address four = {0};
        memcpy(four.bytes, address.bytes + 12, 4);
        address = four;
    }
    *ret = address;
    return true;
}

/* Of what gives an interface its address and the time: such a client binds to each address. */
static bool is_for_the_address(unsigned port)
{
    return port == 67 || port == 68 || port == 123 || port == 546 || port == 547;
}

static void look_at_socket(struct look *look, const char *line, bool tcp)
{
    char local[48], remote[48], from[ADDRESS_TEXT], to[ADDRESS_TEXT], reason[200];
    struct address own, other;
    unsigned port, far_port, state;
    if (sscanf(line, "%*d: %47s %47s %2x", local, remote, &state) != 3 ||
        !parse_end(local, &own, &port) || !parse_end(remote, &other, &far_port))
        return;
    const char *name = owner_of(look, &own);
    if (!name || (tcp && (state == TCP_TIME_WAITS || state == TCP_CLOSED)) ||
        (!tcp && is_for_the_address(port)))
        return;
    bool waits = tcp ? state == TCP_LISTENS : state != TCP_CONNECTED;
    if (waits)
        snprintf(reason, sizeof reason, "a process of the host listens on %s port %u (%s)",
                 address_text(own.ipv6, own.bytes, from), port, tcp ? "TCP" : "UDP");
    else
        snprintf(reason, sizeof reason,
                 "a process of the host is connected from %s to %s port %u (%s)",
                 address_text(own.ipv6, own.bytes, from), address_text(other.ipv6, other.bytes, to),
                 far_port, tcp ? "TCP" : "UDP");
    add(look, name, reason);
}

static void look_at_tcp(struct look *look, char *line)
{
    look_at_socket(look, line, true);
}

static void look_at_udp(struct look *look, char *line)
{
    look_at_socket(look, line, false);
}

/* A busy node has ten thousands of sockets: they are not looked at for nothing. */
static bool any_address(const struct look *look)
{
    struct address own;
    for (const struct ifaddrs *i = look->addresses; i; i = i->ifa_next)
        if (strlist_has(look->interfaces, i->ifa_name) && address_of(i->ifa_addr, &own))
            return true;
    return false;
}

/* ---- programs ---- */

static void look_at_programs(struct look *look)
{
    char name[64], reason[200];
    for (size_t i = 0; i < look->interfaces->count; i++) {
        if (!tc_programs_find(look->interfaces->items[i], name, sizeof name))
            continue;
        snprintf(reason, sizeof reason,
                 "it has a BPF program (tc, %s), which would be lost on the way into a pod", name);
        add(look, look->interfaces->items[i], reason);
    }
}

/* ---- the whole ---- */

int live_use_read(int root, const struct ifaddrs *addresses, const struct strlist *interfaces,
                  struct host_use *ret_use, struct drarun_error *err)
{
    struct host_use use = {0};
    struct look look = {root, addresses, interfaces, {0}, &use};
    if (interfaces->count == 0) {
        *ret_use = use;
        return 0;
    }
    int rc = routes_read(root, &look.routes, err);
    if (rc < 0)
        return rc;
    look_at_routes(&look);
    each_line(&look, "proc/1/mounts", look_at_mount);
    look_at_class(&look, "sys/class/nvme", "address");
    look_at_class(&look, "sys/class/iscsi_connection", "persistent_address");
    if (any_address(&look)) {
        each_line(&look, "proc/net/tcp", look_at_tcp);
        each_line(&look, "proc/net/tcp6", look_at_tcp);
        each_line(&look, "proc/net/udp", look_at_udp);
        each_line(&look, "proc/net/udp6", look_at_udp);
    }
    if (addresses) /* of this machine */
        look_at_programs(&look);
    routes_done(&look.routes);
    if (use.names.failed || use.reasons.failed) {
        host_use_done(&use);
        return error_set(err, ENOMEM, "interfaces in use: out of memory");
    }
    *ret_use = use;
    return 0;
}

int live_addresses(struct ifaddrs **ret_addresses, struct drarun_error *err)
{
    struct ifaddrs *addresses = NULL;
    if (getifaddrs(&addresses) < 0)
        return error_set(err, errno,
                         "the addresses of this machine, which say what interfaces it uses: %s",
                         strerror(errno));
    *ret_addresses = addresses;
    return 0;
}

int live_use_now(const struct strlist *interfaces, struct host_use *ret_use,
                 struct drarun_error *err)
{
    struct ifaddrs *addresses = NULL;
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return error_set(err, errno, "open /: %s", strerror(errno));
    int rc = live_addresses(&addresses, err);
    if (rc == 0)
        rc = live_use_read(root, addresses, interfaces, ret_use, err);
    if (addresses)
        freeifaddrs(addresses);
    return rc;
}
