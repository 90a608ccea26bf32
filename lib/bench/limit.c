/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/limit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* Of several groups (NCCL_TESTS_SPLIT) what one of them is. */
struct shape {
    size_t ranks, hosts;
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

/* A host of the run. Workers of a job's roles may have other devices each. */
struct host {
    const char *name, *model; /* model: "" where its GPUs differ */
    size_t ranks;             /* of the group */
    size_t all;               /* of all groups, which share its NICs */
    double gbit;              /* what the group's ranks know of their NICs, all together; 0 */
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct host *)a)->name, ((const struct host *)b)->name);
}

/* Sorted by name, those of other groups with no rank; NULL without memory. */
static struct host *hosts_of(const struct result *r, size_t *ret_count)
{
    size_t count = 0;
    struct host *list = calloc(r->rank_count + 1, sizeof *list);
    for (size_t i = 0; list && i < r->rank_count; i++) {
        const struct result_rank *rank = &r->ranks[i];
        bool counts = rank->group == r->ranks[0].group;
        list[i] = (struct host){rank->host, rank->model, counts, 1, counts ? rank->nic_gbit : 0};
    }
    if (list)
        qsort(list, r->rank_count, sizeof *list, compare_names);
    for (size_t i = 0; list && i < r->rank_count; i++) {
        if (count > 0 && strcmp(list[count - 1].name, list[i].name) == 0) {
            if (strcmp(list[count - 1].model, list[i].model) != 0)
                list[count - 1].model = "";
            list[count - 1].ranks += list[i].ranks;
            list[count - 1].all++;
            list[count - 1].gbit += list[i].gbit;
        } else {
            list[count++] = list[i];
        }
    }
    *ret_count = count;
    return list;
}

/* The number of a host's NICs, where the run does not know their speed. */
static double count_nics(const struct run *run, const struct host *host,
                         const struct known_machine *machine, const struct limit_given *given,
                         char *source, size_t size)
{
    const char *gbit = given->nic_gbit > 0 ? ", --nic-gbit" : "";
    if (given->nics) {
        snprintf(source, size, "--nics, --nic-gbit");
        return given->nics;
    }
    if (given->claimed_nics && given->claimed_role)
        snprintf(source, size, "what role %.60s claims, the fewest of all%s", given->claimed_role,
                 gbit);
    else if (given->claimed_nics)
        snprintf(source, size, "what was claimed%s", gbit);
    if (given->claimed_nics)
        return given->claimed_nics;
    if (run->log.nic_count) {
        snprintf(source, size, "their number from NCCL's log%s", gbit);
        return (double)run->log.nic_count;
    }
    if (!machine)
        return 0;
    double nics = (double)machine->nics * (double)host->all / machine->gpus;
    snprintf(source, size, "a NIC for each GPU");
    return nics > 0 && nics < 1 ? 1 : nics;
}

/* NICs of a host that this run could use, in GB/s; 0: not known. */
static double of_nics(const struct run *run, const struct host *host,
                      const struct known_machine *machine, const struct limit_given *given,
                      struct limit *limit)
{
    char source[128] = "--nics, --nic-gbit";
    double gbit = given->nic_gbit;
    if (host->gbit > 0 && !given->nics && !(gbit > 0)) {
        snprintf(limit->why, sizeof limit->why,
                 "NICs of %g Gb/s a host (NCCL_IB_HCA and the speed of their ports)", host->gbit);
        return host->gbit / 8;
    }
    double share = (double)host->ranks / (double)host->all;
    double nics = share * count_nics(run, host, machine, given, source, sizeof source);
    if (!(gbit > 0) && machine) {
        gbit = machine->nic_gbit;
        limit->assumed = true;
    }
    if (!(gbit > 0) || !(nics > 0))
        return 0;
    snprintf(limit->why, sizeof limit->why, "%g NIC%s of %g Gb/s a host (%s)%s%s%s", nics,
             nics == 1 ? "" : "s", gbit, source, limit->assumed ? ", as " : "",
             limit->assumed ? machine->name : "", limit->assumed ? " has them" : "");
    return nics * gbit / 8;
}

/* What busbw can be when a host's NICs carry `gbs` each direction; 0: not known. */
static double bus_bandwidth(const struct shape *s, const struct host *host, double gbs)
{
    double n = (double)s->ranks, g = (double)host->ranks, remote = n - g;
    if (is(s, "all_reduce all_gather reduce_scatter broadcast reduce"))
        return gbs; /* a ring leaves each host once */
    if (is(s, "sendrecv"))
        return gbs / g; /* one rank of a host sends to another one */
    if (remote <= 0)
        return 0;
    if (is(s, "alltoall hypercube"))
        return gbs / g * (n - 1) / remote; /* what stays on the host costs no NIC anything */
    return 0;
}

/* What a host bounds: its NICs, or what connects its GPUs where that is less. Whether anything is
 * known of its NICs. */
static bool of_host(const struct run *run, const struct shape *s, const struct host *host,
                    const struct known_machine *machine, const struct limit_given *given,
                    struct limit *limit)
{
    double nics = of_nics(run, host, machine, given, limit);
    double links = given->link_gbs > 0 ? given->link_gbs : machine ? machine->nvlink_gbs : 0;
    limit->gbs = bus_bandwidth(s, host, nics);
    if (limit->gbs > 0 && links > 0 && host->ranks > 1 && links < limit->gbs)
        of_links(machine, given, false, limit);
    return nics > 0;
}

/* Of all hosts of which something is known, the one that bounds the least. */
static void between_hosts(const struct run *run, const struct shape *s,
                          const struct known_machine *machine, const struct limit_given *given,
                          struct limit *limit)
{
    size_t count = 0;
    bool differ = false, known = false;
    const struct host *least = NULL;
    cleanup_free struct host *hosts = hosts_of(&run->result, &count);
    for (size_t i = 0; hosts && i < count; i++) {
        struct limit own = {0};
        const struct host *host = &hosts[i];
        const struct known_machine *like =
            machine ? machine : known_find_gpu(given->known, host->model, host->all);
        if (host->ranks == 0)
            continue;
        known |= of_host(run, s, host, like, given, &own);
        differ |= least && own.gbs > 0 && own.gbs != limit->gbs;
        if (own.gbs > 0 && (!least || own.gbs < limit->gbs)) {
            *limit = own;
            least = host;
        }
    }
    size_t length = strlen(limit->why);
    if (differ)
        snprintf(limit->why + length, sizeof limit->why - length, "; the least of %zu hosts, %.60s",
                 s->hosts, least->name);
    if (!hosts)
        unknown(limit, "out of memory");
    else if (!known)
        unknown(limit, "nothing is known of the NICs: say --nics N --nic-gbit GBIT, or --machine");
    else if (!s->collective[0])
        unknown(limit, "the collective is not known: say --collective");
    else if (!least)
        unknown(limit, "%s between %zu hosts of %zu ranks: no limit is known for that",
                s->collective, s->hosts, s->ranks);
}

/* The first rank's group; false: groups differ in their number of ranks. ranks: room for all. */
static bool take_group(const struct result *r, size_t groups, struct result_rank *ranks,
                       struct result *ret_group)
{
    size_t count = 0;
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].group == r->ranks[0].group)
            ranks[count++] = r->ranks[i];
    *ret_group = *r;
    ret_group->ranks = ranks;
    ret_group->rank_count = count;
    return count * groups == r->rank_count;
}

static int compare_groups(const void *a, const void *b)
{
    unsigned x = ((const struct result_rank *)a)->group, y = ((const struct result_rank *)b)->group;
    return (x > y) - (x < y);
}

static int compare_ranks(const void *a, const void *b)
{
    size_t x = ((const struct host *)a)->ranks, y = ((const struct host *)b)->ranks;
    return (x > y) - (x < y);
}

/* The hosts of the group that begins there, by how many of its ranks they have. */
static struct host *hosts_at(struct result_rank *ranks, size_t count, size_t *ret_length,
                             size_t *ret_hosts)
{
    size_t length = 1;
    while (length < count && ranks[length].group == ranks[0].group)
        length++;
    const struct result group = {.ranks = ranks, .rank_count = length};
    struct host *hosts = hosts_of(&group, ret_hosts);
    if (hosts)
        qsort(hosts, *ret_hosts, sizeof *hosts, compare_ranks);
    *ret_length = length;
    return hosts;
}

/* Whether each group lies on as many hosts, with as many ranks on each: one may be within a host
 * where another one is between two. ranks: the result's. */
static bool lie_alike(const struct result *r, struct result_rank *ranks)
{
    size_t count = 0, length = 0;
    bool alike = true;
    memcpy(ranks, r->ranks, r->rank_count * sizeof *ranks);
    qsort(ranks, r->rank_count, sizeof *ranks, compare_groups);
    cleanup_free struct host *first = NULL;
    for (size_t from = 0, hosts = 0; alike && from < r->rank_count; from += length) {
        cleanup_free struct host *own =
            hosts_at(ranks + from, r->rank_count - from, &length, &hosts);
        if (!own)
            return false;
        if (!first) {
            first = TAKE_PTR(own);
            count = hosts;
        }
        alike = from == 0 || hosts == count;
        for (size_t i = 0; from > 0 && alike && i < count; i++)
            alike = own[i].ranks == first[i].ranks;
    }
    return alike;
}

/* A job that is larger than an NVLink domain. */
static bool is_of_domains(const struct nccl_log *log)
{
    return log->nvlink_hosts > 0 && log->net_count > 0;
}

static void of_shape(const struct run *run, const struct shape *s,
                     const struct known_machine *machine, const struct limit_given *given,
                     struct limit *limit)
{
    if (s->ranks == 0)
        unknown(limit, "no rank is known: the lines that name the devices are missing");
    else if (s->ranks == 1)
        unknown(limit, "one rank: its bus bandwidth is 0 by definition");
    else if (s->hosts == 0)
        unknown(limit, "the hosts are not known");
    else if (is(s, "barrier alltoallv"))
        unknown(limit, "%s has no bus bandwidth that a link bounds", s->collective);
    else if (s->hosts == 1 && !(given->link_gbs > 0) &&
             strcmp(run->result.ranks[0].model, "memory") == 0)
        of_memory(&run->result, s, limit);
    else if (s->hosts > 1 && is_of_domains(&run->log) && !(given->link_gbs > 0))
        unknown(limit, "NVLink connects some of the hosts, and a network others (NCCL's log): "
                       "which of them share an NVLink domain, whose NICs count together, is not "
                       "known");
    else if (s->hosts == 1 || run->log.nvlink_hosts > 0)
        of_links(machine, given, s->hosts > 1, limit);
    else
        between_hosts(run, s, machine, given, limit);
}

void limit_of(const struct run *run, const struct known_machine *machine,
              const struct limit_given *given, struct limit *ret_limit)
{
    struct limit limit = {0};
    struct result group;
    size_t groups = result_groups(&run->result);
    cleanup_free struct result_rank *ranks = calloc(run->result.rank_count + 1, sizeof *ranks);
    if (!ranks) {
        unknown(ret_limit, "out of memory");
        return;
    }
    bool lie = groups < 2 || lie_alike(&run->result, ranks);
    bool alike = take_group(&run->result, groups, ranks, &group);
    const struct shape s = {group.rank_count, result_hosts(&group), group.collective};
    if (alike && lie)
        of_shape(run, &s, machine, given, &limit);
    else if (alike)
        unknown(&limit, "groups that lie on hosts in different ways ran side by side "
                        "(NCCL_TESTS_SPLIT)");
    else
        unknown(&limit, "groups of different numbers of ranks ran side by side (NCCL_TESTS_SPLIT)");
    size_t length = strlen(limit.why);
    if (groups > 1 && limit.gbs > 0)
        snprintf(limit.why + length, sizeof limit.why - length, ", for each of %zu groups", groups);
    limit.unused = s.hosts == 1 && limit.gbs > 0 && is_unused(&run->log.within);
    *ret_limit = limit;
}
