/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/limit.h"

#include <string.h>

struct shape {
    size_t ranks, hosts, of_host;
    const char *collective;
};

static void __attribute__((format(printf, 2, 3)))
unknown(struct limit *limit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(limit->why, sizeof limit->why, format, arguments);
    va_end(arguments);
    limit->gbs = 0;
}

static bool is(const struct shape *s, const char *names)
{
    size_t length = strlen(s->collective);
    const char *at = length ? strstr(names, s->collective) : NULL;
    return at && (at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length]);
}

/* ---- within a host ---- */

static void of_links(const struct known_machine *machine, const struct limit_given *given,
                     bool between, struct limit *limit)
{
    const char *where = between ? " (between hosts too: NCCL's log)" : "";
    if (given->link_gbs > 0) {
        limit->gbs = given->link_gbs;
        snprintf(limit->why, sizeof limit->why, "%g GB/s between GPUs%s (--link)", limit->gbs,
                 where);
    } else if (machine && machine->nvlink_gbs > 0) {
        limit->gbs = machine->nvlink_gbs;
        limit->assumed = true;
        snprintf(limit->why, sizeof limit->why, "NVLink of %g GB/s each direction%s, as %s has it",
                 limit->gbs, where, machine->name);
    } else {
        unknown(limit, "nothing is known of what connects the GPUs: say --link GB/S, or --machine");
    }
}

/* NCCL's log names connections of the host, and none that reaches the other GPU. */
static bool is_unused(const struct nccl_within *within)
{
    return within->p2p == 0 && nccl_within_detours(within);
}

/* Each byte of a bus bandwidth is one that a rank writes: none can do so faster than it copies. */
static void of_memory(const struct result *r, const struct shape *s, struct limit *limit)
{
    double least = 0;
    for (size_t i = 0; i < r->rank_count; i++)
        if (i == 0 || r->ranks[i].copy_gbs < least)
            least = r->ranks[i].copy_gbs;
    if (!(least > 0)) {
        unknown(limit,
                "ranks of one host share its memory, which was not measured: say --link GB/S");
        return;
    }
    if (!is(s, "all_reduce all_gather reduce_scatter broadcast alltoall sendrecv hypercube")) {
        unknown(limit, "%s: what memory allows is not known for it: say --link GB/S",
                s->collective);
        return;
    }
    limit->gbs = least;
    snprintf(limit->why, sizeof limit->why,
             "memory, as fast as the slowest rank copied while all did (measured)");
}

/* ---- between hosts ---- */

/* NICs of a host that this run could use, in GB/s; 0: not known. */
static double of_nics(const struct run *run, const struct shape *s,
                      const struct known_machine *machine, const struct limit_given *given,
                      struct limit *limit)
{
    double gbit = given->nic_gbit, own = 0, nics = given->nics;
    const char *source = "--nics, --nic-gbit";
    for (size_t i = 0; i < run->result.rank_count; i++)
        if (strcmp(run->result.ranks[i].host, run->result.ranks[0].host) == 0)
            own += run->result.ranks[i].nic_gbit;
    if (own > 0 && !nics && !gbit) {
        snprintf(limit->why, sizeof limit->why,
                 "NICs of %g Gb/s a host (NCCL_IB_HCA and the speed of their ports)", own);
        return own / 8;
    }
    if (!nics && given->claimed_nics) {
        nics = given->claimed_nics;
        source = gbit > 0 ? "what was claimed, --nic-gbit" : "what was claimed";
    }
    if (!nics && run->log.nic_count) {
        nics = (double)run->log.nic_count;
        source =
            gbit > 0 ? "their number from NCCL's log, --nic-gbit" : "their number from NCCL's log";
    }
    if (!nics && machine) {
        nics = (double)machine->nics * (double)s->of_host / machine->gpus;
        nics = nics > 0 && nics < 1 ? 1 : nics;
        source = "a NIC for each GPU";
    }
    if (!(gbit > 0) && machine) {
        gbit = machine->nic_gbit;
        limit->assumed = true;
    }
    if (!(gbit > 0) || !(nics > 0))
        return 0;
    if (limit->assumed)
        snprintf(limit->why, sizeof limit->why, "%g NIC%s of %g Gb/s a host (%s), as %s has them",
                 nics, nics == 1 ? "" : "s", gbit, source, machine->name);
    else
        snprintf(limit->why, sizeof limit->why, "%g NIC%s of %g Gb/s a host (%s)", nics,
                 nics == 1 ? "" : "s", gbit, source);
    return nics * gbit / 8;
}

/* What busbw can be when a host's NICs carry `host` GB/s each direction; 0: not known. */
static double bus_bandwidth(const struct shape *s, double host)
{
    double n = (double)s->ranks, g = (double)s->of_host, remote = n - g;
    if (is(s, "all_reduce all_gather reduce_scatter broadcast reduce"))
        return host; /* a ring leaves each host once */
    if (is(s, "sendrecv"))
        return host / g; /* one rank of a host sends to another one */
    if (s->ranks != s->hosts * s->of_host || remote <= 0)
        return 0;
    if (is(s, "alltoall hypercube"))
        return host / g * (n - 1) / remote; /* what stays on the host costs no NIC anything */
    return 0;
}

static void between_hosts(const struct run *run, const struct shape *s,
                          const struct known_machine *machine, const struct limit_given *given,
                          struct limit *limit)
{
    double host = of_nics(run, s, machine, given, limit);
    double links = given->link_gbs > 0 ? given->link_gbs : machine ? machine->nvlink_gbs : 0;
    if (!(host > 0)) {
        unknown(limit, "nothing is known of the NICs: say --nics N --nic-gbit GBIT, or --machine");
        return;
    }
    limit->gbs = bus_bandwidth(s, host);
    if (!s->collective[0])
        unknown(limit, "the collective is not known: say --collective");
    else if (!(limit->gbs > 0))
        unknown(limit, "%s between %zu hosts of %zu ranks: no limit is known for that",
                s->collective, s->hosts, s->ranks);
    else if (links > 0 && s->of_host > 1 && links < limit->gbs)
        of_links(machine, given, false, limit);
}

void limit_of(const struct run *run, const struct known_machine *machine,
              const struct limit_given *given, struct limit *ret_limit)
{
    const struct shape s = {run->result.rank_count, result_hosts(&run->result),
                            known_ranks_of_host(&run->result), run->result.collective};
    struct limit limit = {0};
    if (s.ranks == 0)
        unknown(&limit, "no rank is known: the lines that name the devices are missing");
    else if (s.ranks == 1)
        unknown(&limit, "one rank: its bus bandwidth is 0 by definition");
    else if (s.hosts == 0)
        unknown(&limit, "the hosts are not known");
    else if (is(&s, "barrier alltoallv"))
        unknown(&limit, "%s has no bus bandwidth that a link bounds", s.collective);
    else if (s.hosts == 1 && !(given->link_gbs > 0) &&
             strcmp(run->result.ranks[0].model, "memory") == 0)
        of_memory(&run->result, &s, &limit);
    else if (s.hosts == 1 || run->log.nvlink_hosts > 0)
        of_links(machine, given, s.hosts > 1, &limit);
    else
        between_hosts(run, &s, machine, given, &limit);
    limit.unused = s.hosts == 1 && limit.gbs > 0 && is_unused(&run->log.within);
    *ret_limit = limit;
}
