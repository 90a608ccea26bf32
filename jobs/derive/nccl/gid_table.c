/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/nccl/gid_table.h"

#include <stdio.h>
#include <string.h>

#include "jobs/derive/nccl/nccl_topology.h"
#include "lib/topo/rdma_text.h"

static bool is_ipv4(const uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(bytes, mapped, sizeof mapped) == 0;
}

/* 169.254/16 and fe80::/10. */
static bool is_link_local(const uint8_t bytes[16])
{
    if (is_ipv4(bytes))
        return bytes[12] == 169 && bytes[13] == 254;
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

static void take_first(int32_t *entry, uint32_t index)
{
    if (*entry < 0)
        *entry = (int32_t)index;
}

void gid_table_read(const struct topo_port *port, struct gid_table *ret_table)
{
    struct gid_table table = {.ipv4 = -1, .ipv6 = -1, .local = -1};
    const struct topo_gid *local = NULL;
    for (size_t i = 0; i < port->gid_count; i++) {
        const struct topo_gid *gid = &port->gids[i];
        bool ipv4 = is_ipv4(gid->bytes);
        table.known |= gid->type != TOPO_GID_UNKNOWN;
        if (gid->type != TOPO_GID_ROCE2 || gid->elsewhere)
            continue;
        if (!is_link_local(gid->bytes))
            take_first(ipv4 ? &table.ipv4 : &table.ipv6, gid->index);
        else if (!local || (ipv4 && !is_ipv4(local->bytes)))
            local = gid;
    }
    if (local) {
        table.local = (int32_t)local->index;
        gid_format(local->bytes, table.local_text);
    }
    *ret_table = table;
}

/* ---- NCCL's own choice ---- */

/* Not fe80::/64; NCCL takes 169.254/16 for an address like any other. */
static bool is_valid(const struct topo_gid *gid)
{
    static const uint8_t fe80[8] = {0xfe, 0x80};
    return gid && memcmp(gid->bytes, fe80, sizeof fe80) != 0;
}

/* -1: the type cannot be read. */
static int roce_version(const struct topo_gid *gid)
{
    if (!gid || gid->type == TOPO_GID_UNKNOWN)
        return -1;
    return gid->type == TOPO_GID_ROCE2 ? 2 : 1;
}

int32_t gid_nccl_pick(const struct topo_port *port, uint32_t version, bool ipv6)
{
    /* an entry that is empty, as 0 may be, is IPv6 and not valid */
    const struct topo_gid *taken =
        port->gid_count > 0 && port->gids[0].index == 0 ? &port->gids[0] : NULL;
    if (version < NCCL_VERSION(2, 21, 0))
        return 0;
    for (size_t i = 0; i < port->gid_count; i++) {
        const struct topo_gid *next = &port->gids[i];
        bool next_ipv6 = !is_ipv4(next->bytes), taken_ipv6 = !taken || !is_ipv4(taken->bytes);
        if (next->index == 0 || next_ipv6 != ipv6)
            continue;
        if (next_ipv6 != taken_ipv6) {
            taken = next;
            continue;
        }
        if (!is_valid(next))
            continue;
        int old = roce_version(taken), new = roce_version(next);
        if ((old < 0 || new < 0) && version < NCCL_VERSION(2, 26, 0))
            return GID_PICK_ERROR;
        if ((old != new || !is_valid(taken)) && new == 2)
            taken = next;
    }
    return taken ? (int32_t)taken->index : 0;
}
