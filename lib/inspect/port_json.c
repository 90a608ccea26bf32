/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/port_json.h"

#include "lib/inspect/members.h"
#include "lib/topo/rdma_text.h"

static json_t *text_or_null(const char *text, bool known)
{
    return known ? json_string(text) : json_null();
}

static json_t *gid_json(const struct topo_gid *gid)
{
    char text[48];
    json_t *object = json_object();
    gid_format(gid->bytes, text);
    member_set(object, "index", json_integer(gid->index));
    member_set(object, "address", json_string(text));
    member_set(object, "type", text_or_null(topo_gid_type_name(gid->type), gid->type));
    member_set(object, "netdev", text_or_null(gid->netdev, gid->netdev[0]));
    if (gid->elsewhere && gid->type != TOPO_GID_UNKNOWN)
        member_set(object, "elsewhere", json_true());
    return object;
}

static bool is_own(const struct topo_gid *gid)
{
    return gid->type != TOPO_GID_UNKNOWN && !gid->elsewhere;
}

json_t *gids_json(const struct topo_port *port, size_t others_max)
{
    json_t *gids = json_array();
    size_t others = 0;
    for (size_t i = 0; i < port->gid_count; i++)
        if (is_own(&port->gids[i]) || others++ < others_max)
            json_array_append_new(gids, gid_json(&port->gids[i]));
    return gids;
}

json_t *port_json(const struct topo_port *port, size_t others_max)
{
    json_t *object = json_object();
    member_set(object, "number", json_integer(port->number));
    member_set(object, "state", text_or_null(port->state, port->state[0]));
    member_set(object, "linkLayer", text_or_null(topo_link_name(port->link), port->link));
    member_set(object, "rateMbps", port->rate_mbps ? json_integer(port->rate_mbps) : json_null());
    member_set(object, "gids", gids_json(port, others_max));
    return object;
}
