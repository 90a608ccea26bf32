/* SPDX-License-Identifier: Apache-2.0 */
/* RoCE: which address family and which entry of its NICs' GID tables a worker uses. */
#include <stdio.h>
#include <string.h>

#include "jobs/derive/nccl/gid_table.h"
#include "jobs/derive/nccl/nccl_topology.h"
#include "jobs/derive/variables/variables_private.h"

#define GID_INDEX "NCCL_IB_GID_INDEX"
#define USUAL_ROCE2_GID 3 /* where a NIC with one IPv4 address has its RoCE v2 entry */
#define PORTS_MAX (NCCL_NICS_MAX * 2)

struct gid_port {
    const char *device;
    const struct topo_port *port; /* NULL: the index alone is known */
    struct gid_table table;
    int32_t index; /* that carries data; -1: none */
};

struct gid_ports {
    struct gid_port list[PORTS_MAX];
    size_t count;
    bool known; /* of all of them, and all are of Ethernet */
};

static bool is_wanted(const struct making *m)
{
    return m->profile->roce_gid && m->profile->data == PROFILE_RDMA;
}

/* A probe of the older shape tells one index, which is that of an IPv4 address. */
static struct gid_port port_of(const struct plan_nic *nic, const struct topo_port *port)
{
    struct gid_port found = {.device = nic->found.ibdev ? nic->found.ibdev : nic->found.label,
                             .table = {.ipv4 = -1, .ipv6 = -1, .local = -1}};
    if (nic->found.iwarp) /* it connects by its interface's address, and by no entry */
        return found;
    if (port && port->gid_count > 0) {
        found.port = port;
        gid_table_read(port, &found.table);
    } else if (nic->found.gid >= 0) {
        found.table.known = true;
        found.table.ipv4 = nic->found.gid;
    }
    return found;
}

static void read_ports(const struct devices *devices, struct gid_ports *ret_ports)
{
    ret_ports->count = 0;
    ret_ports->known = devices->nic_count > 0;
    for (size_t n = 0; n < devices->nic_count; n++) {
        const struct plan_nic *nic = &devices->nics[n];
        const struct topo_port *data[DATA_NIC_PORTS_MAX];
        size_t count = inventory_nic_ports(&nic->found, data);
        ret_ports->known &= strcmp(nic->found.link_layer, "Ethernet") == 0 && count > 0;
        for (size_t i = 0; i < count && ret_ports->count < PORTS_MAX; i++) {
            struct gid_port port = port_of(nic, data[i]);
            ret_ports->known &= port.table.known;
            ret_ports->list[ret_ports->count++] = port;
        }
    }
}

/* ---- the family ---- */

void making_gid_family(struct making *m)
{
    size_t all = 0, ipv4 = 0, ipv6 = 0;
    const char *given = variables_effective(m->in, m->vars, "NCCL_IB_ADDR_FAMILY");
    for (size_t w = 0; is_wanted(m) && w < m->in->worker_count; w++) {
        struct gid_ports ports;
        read_ports(&m->devices[w], &ports);
        for (size_t i = 0; i < ports.count; i++) {
            all += ports.list[i].table.known;
            ipv4 += ports.list[i].table.ipv4 >= 0;
            ipv6 += ports.list[i].table.ipv6 >= 0;
        }
    }
    m->vars->roce_ipv6 = given ? strcmp(given, "AF_INET6") == 0 : ipv4 < all && ipv6 > ipv4;
}

static void set_family(struct making *m, struct plan_vars *env)
{
    if (m->vars->roce_ipv6 && m->version >= NCCL_VERSION(2, 21, 0) &&
        !plan_vars_find(&m->vars->env, "NCCL_IB_ADDR_FAMILY"))
        making_set_own(m, env, "NCCL_IB_ADDR_FAMILY", "AF_INET6", "gid-family",
                       "GID tables of the NICs: their addresses are of IPv6");
}

/* ---- what has no address ---- */

static void say_no_address(const struct gid_port *port, bool ipv6, struct buf *out)
{
    const struct gid_table *t = &port->table;
    buf_printf(out, "%s%s:%u ", out->len ? "; " : "", port->device, port->port->number);
    if ((ipv6 ? t->ipv4 : t->ipv6) >= 0)
        buf_printf(out, "has only %s addresses, and others have %s", ipv6 ? "IPv4" : "IPv6",
                   ipv6 ? "IPv6" : "IPv4");
    else if (t->local >= 0)
        buf_printf(out, "has only the link-local address %s", t->local_text);
    else
        buf_add_str(out, "has no RoCE v2 GID");
}

static void warn_no_address(struct making *m, const struct gid_ports *ports, int32_t w)
{
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < ports->count; i++) {
        const struct gid_port *port = &ports->list[i];
        int32_t entry = m->vars->roce_ipv6 ? port->table.ipv6 : port->table.ipv4;
        if (port->port && port->table.known && port->port->link == TOPO_LINK_ETHERNET && entry < 0)
            say_no_address(port, m->vars->roce_ipv6, &names);
    }
    if (names.len)
        warnings_add(&m->notes->warnings, WARN_NIC_NO_ADDRESS, w,
                     "%s: connections to nodes beyond its own link time out; give its interface an "
                     "address that the other nodes can reach",
                     names.data);
    m->notes->pool.failed |= names.failed;
    buf_done(&names);
}

/* ---- the index ---- */

static const char *version_text(struct making *m)
{
    uint32_t v = m->version;
    return plan_notes_text(m->notes, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

/* -1, as nothing, leaves the choice to NCCL. */
static bool is_index(const char *value)
{
    return value && value[0] >= '0' && value[0] <= '9';
}

/* What NCCL does where one index cannot be right for all. */
static const char *outcome(struct making *m, const struct gid_ports *ports)
{
    const char *version = version_text(m), *user = NULL;
    if (variables_user(m->in, GID_INDEX, &user) && is_index(user))
        return plan_notes_text(m->notes,
                               "your " GID_INDEX
                               "=%s is taken for all NICs: remove it, and use NCCL "
                               "2.26 or newer",
                               user);
    if (m->version < NCCL_VERSION(2, 21, 0))
        return plan_notes_text(
            m->notes,
            "NCCL %s takes one entry for all NICs, and none fits: use NCCL 2.26 or "
            "newer, or give the NICs equal tables",
            version);
    for (size_t i = 0; i < ports->count; i++) {
        const struct gid_port *port = &ports->list[i];
        int32_t pick = port->port ? gid_nccl_pick(port->port, m->version, m->vars->roce_ipv6) : 0;
        if (pick == GID_PICK_ERROR)
            return plan_notes_text(
                m->notes,
                "NCCL %s ends with a system error (ncclIbRoceGetVersionNum) at the "
                "entries of other network namespaces in the table of %s: use NCCL "
                "2.26 or newer",
                version, port->device);
        if (port->port && pick != port->index)
            return plan_notes_text(
                m->notes,
                "NCCL %s takes entry %d of %s: set NCCL_IB_ADDR_RANGE to the NICs' "
                "network",
                version, pick, port->device);
    }
    return plan_notes_text(m->notes, "NCCL %s finds each NIC's own", version);
}

static void warn_differ(struct making *m, const struct gid_ports *ports, int32_t w)
{
    struct buf entries = BUF_INIT;
    for (size_t i = 0; i < ports->count; i++)
        buf_printf(&entries, "%s%s %d", i ? ", " : "", ports->list[i].device, ports->list[i].index);
    warnings_add(&m->notes->warnings, WARN_GID_INDEX_DIFFERS, w,
                 "the NICs' RoCE v2 GIDs are at different entries (%s): %s",
                 entries.data ? entries.data : "", outcome(m, ports));
    m->notes->pool.failed |= entries.failed;
    buf_done(&entries);
}

/* Whether NCCL by itself would take another entry than that of the NIC's address. */
static bool nccl_errs(const struct making *m, const struct gid_ports *ports)
{
    for (size_t i = 0; i < ports->count; i++) {
        const struct topo_port *port = ports->list[i].port;
        if (m->version < NCCL_VERSION(2, 21, 0) ||
            (port && gid_nccl_pick(port, m->version, m->vars->roce_ipv6) != ports->list[i].index))
            return true;
    }
    return false;
}

/* One index for all NICs, which the vendor's table or script has, is wrong for some of them. */
static void free_index(struct making *m, struct plan_vars *env)
{
    const char *user = NULL;
    if (m->version >= NCCL_VERSION(2, 21, 0) && !variables_user(m->in, GID_INDEX, &user) &&
        is_index(variables_effective(m->in, m->vars, GID_INDEX)))
        making_set_own(m, env, GID_INDEX, "-1", "gid-differs", "GID tables of the pod's NICs");
}

/* NCCL looks for an entry in that range by itself, which need not be the first. */
static bool has_range(const struct making *m)
{
    const char *range = variables_effective(m->in, m->vars, "NCCL_IB_ADDR_RANGE");
    return range && range[0] && m->version >= NCCL_VERSION(2, 21, 0);
}

/* Where all agree; elsewhere it is said what follows. */
static void set_index(struct making *m, struct plan_vars *env, struct gid_ports *ports, int32_t w)
{
    bool agree = true;
    for (size_t i = 0; i < ports->count; i++) {
        struct gid_port *port = &ports->list[i];
        port->index = m->vars->roce_ipv6 ? port->table.ipv6 : port->table.ipv4;
        if (port->index < 0)
            port->index = port->table.local;
        if (port->index < 0)
            return;
        agree &= port->index == ports->list[0].index;
    }
    if (!agree) {
        free_index(m, env);
        warn_differ(m, ports, w);
        return;
    }
    int32_t index = ports->list[0].index;
    bool shifted = index != USUAL_ROCE2_GID;
    const char *value = plan_notes_text(m->notes, "%d", index),
               *fact = "GID table of the pod's NICs";
    if (shifted)
        warnings_add(&m->notes->warnings, WARN_GID_INDEX_DIFFERS, w,
                     "the pod's RoCE v2 GID is entry %d, not %d", index, USUAL_ROCE2_GID);
    if (shifted || nccl_errs(m, ports))
        making_set_own(m, env, GID_INDEX, value, "gid-index", fact);
    if (shifted)
        making_set_own(m, env, "UCX_IB_GID_INDEX", value, "gid-index", fact);
}

void making_gid(struct making *m, uint32_t w)
{
    struct plan_vars *env = &m->vars->workers[w].env;
    struct gid_ports ports;
    if (!is_wanted(m))
        return;
    read_ports(&m->devices[w], &ports);
    warn_no_address(m, &ports, (int32_t)w);
    if (!ports.known)
        return;
    set_family(m, env);
    if (!has_range(m))
        set_index(m, env, &ports, (int32_t)w);
}
