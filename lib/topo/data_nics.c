/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/data_nics.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/cleanup.h"

static size_t ports_of(const struct data_nic *nic)
{
    return nic->port_count < DATA_NIC_PORTS_MAX ? nic->port_count : DATA_NIC_PORTS_MAX;
}

static bool is_down(const struct data_nic *nic)
{
    for (size_t i = 0; i < ports_of(nic); i++)
        if (nic->ports[i].active != TOPO_NO)
            return false;
    return nic->port_count > 0;
}

static enum nic_use first_use(const struct data_nic *nic)
{
    if (nic->usable == TOPO_NO)
        return NIC_USE_WITHHELD;
    if (is_down(nic))
        return NIC_USE_DOWN;
    return nic->uplink ? NIC_USE_UPLINK : NIC_USE_DATA;
}

static enum topo_link link_of(const struct data_nic *nic)
{
    return nic->port_count > 0 ? nic->ports[0].link : TOPO_LINK_UNKNOWN;
}

/* A device of another fabric that is down is what the job was meant to use: the uplink does not
 * take its place. */
static bool stands_for(const struct data_nic *uplink, const struct data_nic *other)
{
    return other->use != NIC_USE_DOWN || other->uplink || link_of(other) == link_of(uplink);
}

static void use_uplinks(struct data_nic *nics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (nics[i].use == NIC_USE_DATA)
            return;
    for (size_t i = 0; i < count; i++) {
        bool alone = nics[i].use == NIC_USE_UPLINK;
        for (size_t k = 0; alone && k < count; k++)
            alone = stands_for(&nics[i], &nics[k]);
        if (alone)
            nics[i].use = NIC_USE_DATA;
    }
}

static bool counts(const struct data_nic *nic, size_t port)
{
    return nic->use == NIC_USE_DATA && nic->ports[port].active != TOPO_NO;
}

static uint32_t highest_rate(const struct data_nic *nics, size_t count)
{
    uint32_t mbps = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < ports_of(&nics[i]); p++)
            if (counts(&nics[i], p) && nics[i].ports[p].rate_mbps > mbps)
                mbps = nics[i].ports[p].rate_mbps;
    return mbps;
}

/* InfiniBand where both carry as much: it is built for data alone. A port of an unknown rate counts
 * as a fast one. */
static enum topo_link strongest_link(const struct data_nic *nics, size_t count)
{
    static const enum topo_link order[] = {TOPO_LINK_IB, TOPO_LINK_ETHERNET, TOPO_LINK_OTHER};
    uint64_t sums[TOPO_LINK_OTHER + 1] = {0}, best = 0;
    uint32_t highest = highest_rate(nics, count);
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < ports_of(&nics[i]); p++) {
            uint32_t rate = nics[i].ports[p].rate_mbps;
            if (counts(&nics[i], p))
                sums[nics[i].ports[p].link] += rate ? rate : highest ? highest : 1;
        }
    enum topo_link most = TOPO_LINK_UNKNOWN;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (sums[order[i]] > best) {
            most = order[i];
            best = sums[most];
        }
    return most;
}

static bool is_of(const struct data_nic *nic, size_t port, enum topo_link link)
{
    enum topo_link own = nic->ports[port].link;
    return counts(nic, port) &&
           (own == link || own == TOPO_LINK_UNKNOWN || link == TOPO_LINK_UNKNOWN);
}

static uint64_t sum_of_rate(const struct data_nic *nics, size_t count, enum topo_link link,
                            uint32_t mbps)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < ports_of(&nics[i]); p++)
            if (is_of(&nics[i], p, link) && nics[i].ports[p].rate_mbps == mbps)
                sum += mbps;
    return sum;
}

/* The higher one where two carry as much. */
static uint32_t strongest_rate(const struct data_nic *nics, size_t count, enum topo_link link)
{
    uint32_t most = 0;
    uint64_t best = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < ports_of(&nics[i]); p++) {
            uint32_t rate = nics[i].ports[p].rate_mbps;
            uint64_t sum = is_of(&nics[i], p, link) ? sum_of_rate(nics, count, link, rate) : 0;
            if (sum > best || (sum == best && sum > 0 && rate > most)) {
                most = rate;
                best = sum;
            }
        }
    return most;
}

static void choose_ports(struct data_nic *nic, enum topo_link most, uint32_t mbps)
{
    uint32_t of_link = 0, of_rate = 0;
    if (nic->use != NIC_USE_DATA || nic->port_count == 0)
        return;
    for (size_t p = 0; p < ports_of(nic); p++) {
        const struct topo_port *port = &nic->ports[p];
        if (!is_of(nic, p, most))
            continue;
        of_link |= 1u << p;
        if (port->rate_mbps == mbps || port->rate_mbps == 0)
            of_rate |= 1u << p;
    }
    nic->data_ports = nic->claimed ? of_link : of_rate;
    if (!nic->data_ports)
        nic->use = of_link ? NIC_USE_OTHER_RATE : NIC_USE_OTHER_LINK;
}

void data_nics_choose(struct data_nic *nics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nics[i].use = first_use(&nics[i]);
        nics[i].data_ports = 0;
    }
    use_uplinks(nics, count);
    enum topo_link most = strongest_link(nics, count);
    uint32_t mbps = strongest_rate(nics, count, most);
    for (size_t i = 0; i < count; i++) {
        nics[i].most = most;
        nics[i].most_mbps = mbps;
        choose_ports(&nics[i], most, mbps);
    }
}

const struct topo_port *data_nic_port(const struct data_nic *nic)
{
    for (size_t p = 0; p < ports_of(nic); p++)
        if (nic->data_ports & 1u << p)
            return &nic->ports[p];
    return NULL;
}

/* The first that is active, whose facts the reason is about. */
static const struct topo_port *active_port(const struct data_nic *nic)
{
    for (size_t p = 0; p < ports_of(nic); p++)
        if (nic->ports[p].active != TOPO_NO)
            return &nic->ports[p];
    return &nic->ports[0];
}

static void say_down(const struct data_nic *nic, char *text, size_t size)
{
    size_t len = (size_t)snprintf(text, size, "%s (", nic->name);
    for (size_t p = 0; p < ports_of(nic) && len < size; p++) {
        const struct topo_port *port = &nic->ports[p];
        len += (size_t)snprintf(text + len, size - len, "%sport %" PRIu32 " is %s", p ? ", " : "",
                                port->number, port->state[0] ? port->state : "not active");
    }
    if (len < size)
        snprintf(text + len, size - len, ")");
}

void data_nic_reason(const struct data_nic *nic, char *text, size_t size)
{
    switch (nic->use) {
    case NIC_USE_WITHHELD:
        snprintf(text, size, "%s (not given to this pod)", nic->name);
        break;
    case NIC_USE_DOWN:
        say_down(nic, text, size);
        break;
    case NIC_USE_UPLINK:
        snprintf(text, size, "%s (part of the uplink %s)", nic->name, nic->uplink);
        break;
    case NIC_USE_OTHER_LINK:
        snprintf(text, size, "%s (%s, most others are %s)", nic->name,
                 topo_link_name(active_port(nic)->link), topo_link_name(nic->most));
        break;
    case NIC_USE_OTHER_RATE:
        snprintf(text, size, "%s (%g Gb/s, others have %g)", nic->name,
                 active_port(nic)->rate_mbps / 1000.0, nic->most_mbps / 1000.0);
        break;
    default:
        snprintf(text, size, "%s", nic->name);
    }
}
