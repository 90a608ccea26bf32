/* SPDX-License-Identifier: Apache-2.0 */
/* Which GIDs of RoCE are of this network namespace. Where RDMA devices are shared, the table of a
 * port has the addresses of all namespaces that have an interface on it; the kernel's own drivers
 * tell their types and interfaces everywhere, and the interfaces of pods have the same names. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"

#define TABLE_SIZE ((size_t)16 << 20) /* of a node with some hundred thousand routes */

struct address {
    uint8_t bytes[16]; /* as a GID has it */
};

struct addresses {
    struct address *list;
    size_t count, cap;
    bool failed;
};

static void add(struct addresses *all, const struct address *address)
{
    struct address *list = array_room(all->list, all->count, &all->cap, sizeof *list);
    all->failed |= !list;
    if (!list)
        return;
    all->list = list;
    all->list[all->count++] = *address;
}

static bool is_ipv4(const uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(bytes, mapped, sizeof mapped) == 0;
}

/* "|-- 10.0.0.7", and below it "/32 host LOCAL" for an address of an interface. */
static void take_ipv4(const char *line, struct address *last, struct addresses *all)
{
    char text[INET_ADDRSTRLEN];
    if (sscanf(line, " |-- %15[0-9.]", text) == 1) {
        *last = (struct address){.bytes = {[10] = 0xff, [11] = 0xff}};
        inet_pton(AF_INET, text, last->bytes + 12);
    } else if (strncmp(line + strspn(line, " "), "/32 host LOCAL", 14) == 0) {
        add(all, last);
    }
}

/* "fe80000000000000020000fffe000001 02 40 20 80 eth0" */
static void take_ipv6(const char *line, struct address *last, struct addresses *all)
{
    if (strspn(line, "0123456789abcdef") != 2 * sizeof last->bytes)
        return;
    for (size_t i = 0; i < sizeof last->bytes; i++)
        if (sscanf(line + 2 * i, "%2hhx", &last->bytes[i]) != 1)
            return;
    add(all, last);
}

/* False: the table is not there. */
static bool read_table(struct facts_reader *r, const char *path,
                       void (*take)(const char *line, struct address *last, struct addresses *all),
                       struct addresses *all)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    struct address last = {0};
    int rc = root_read_whole(r->root, path, TABLE_SIZE, &text);
    all->failed |= text.failed;
    if (rc < 0 || !text.data)
        return false;
    for (char *line = text.data, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        take(line, &last, all);
    }
    return true;
}

static bool have(const struct addresses *all, const uint8_t bytes[16])
{
    for (size_t i = 0; i < all->count; i++)
        if (memcmp(all->list[i].bytes, bytes, 16) == 0)
            return true;
    return false;
}

/* A port has a GID of its own address in fe80::/10 whether its interface has that or not. */
static bool tells(const struct topo_gid *gid)
{
    bool local = gid->bytes[0] == 0xfe && (gid->bytes[1] & 0xc0) == 0x80;
    return !local && (gid->type == TOPO_GID_ROCE1 || gid->type == TOPO_GID_ROCE2);
}

static bool any_tells(const struct topo_host *host)
{
    for (size_t i = 0; i < host->rdma_count; i++)
        for (size_t p = 0; p < host->rdmas[i].port_count; p++)
            for (size_t g = 0; g < host->rdmas[i].ports[p].gid_count; g++)
                if (tells(&host->rdmas[i].ports[p].gids[g]))
                    return true;
    return false;
}

/* Where none is of this namespace, the addresses may not be what the table was made of. */
static void mark(struct topo_port *port, const struct addresses *all, bool ipv4, bool ipv6)
{
    bool any = false;
    for (size_t g = 0; g < port->gid_count; g++)
        any |= tells(&port->gids[g]) && have(all, port->gids[g].bytes);
    for (size_t g = 0; any && g < port->gid_count; g++) {
        struct topo_gid *gid = &port->gids[g];
        if (tells(gid) && (is_ipv4(gid->bytes) ? ipv4 : ipv6))
            gid->elsewhere |= !have(all, gid->bytes);
    }
}

int read_gid_owners(struct facts_reader *r)
{
    struct topo_host *host = r->host;
    struct addresses all = {0};
    if (!any_tells(host))
        return 0;
    bool ipv4 = read_table(r, "proc/net/fib_trie", take_ipv4, &all);
    bool ipv6 = read_table(r, "proc/net/if_inet6", take_ipv6, &all);
    for (size_t i = 0; !all.failed && i < host->rdma_count; i++)
        for (size_t p = 0; p < host->rdmas[i].port_count; p++)
            mark(&host->rdmas[i].ports[p], &all, ipv4, ipv6);
    free(all.list);
    return all.failed ? facts_nomem(r) : 0;
}
