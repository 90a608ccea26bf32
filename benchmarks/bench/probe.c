/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/rail_probe.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/rails.h"
#include "lib/bench/slowest.h"

/* Between hosts paths differ from those inside: where there are several, they alone are compared.
 * far and near: ranks times ranks. */
static void part(const struct table_rank *ranks, unsigned count, const double *times, double *far,
                 double *near)
{
    bool several = false;
    for (unsigned i = 1; i < count; i++)
        several |= strcmp(ranks[0].host, ranks[i].host) != 0;
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = 0; b < count; b++) {
            bool inner = several && strcmp(ranks[a].host, ranks[b].host) == 0;
            far[a * count + b] = inner ? 0 : times[a * count + b];
            near[a * count + b] = inner ? times[a * count + b] : 0;
        }
}

/* Ranks whose transfers are copies by a CPU, and which have to share the CPUs of some host: how
 * long theirs take says nothing of them. */
static int are_crowded(const struct measure_case *m, const struct table_rank *ranks,
                       bool *ret_crowded, struct drarun_error *err)
{
    cpu_set_t cpus;
    unsigned beside = 0;
    for (unsigned i = 0; i < m->world->ranks; i++)
        beside += strcmp(ranks[i].host, ranks[m->world->rank].host) == 0;
    bool counted = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
    double crowded = !m->world->stand_in && strcmp(m->world->device, "memory") == 0 && counted &&
                     beside > (unsigned)CPU_COUNT(&cpus);
    int rc = m->backend->agree(&crowded, 1, AGREE_MAX, err);
    *ret_crowded = crowded > 0;
    return rc;
}

static int tell(const struct slowest *s, const struct table_rank *ranks, struct probed *to)
{
    to->known = true;
    to->pairs = s->pairs_seen;
    for (size_t i = 0; i < s->rank_count + s->pair_count; i++) {
        bool alone = i < s->rank_count;
        const struct slowest_rank *rank = &s->ranks[i];
        const struct slowest_pair *pair = &s->pairs[i - s->rank_count];
        struct probed_slow *slow = probed_add(to);
        if (!slow)
            return -ENOMEM;
        slow->kind = alone ? PROBED_RANK : PROBED_PAIR;
        slow->seconds = alone ? rank->seconds : pair->seconds;
        slow->usual = alone ? rank->usual : pair->usual;
        table_rank_end(ranks, alone ? rank->rank : pair->a, &slow->at);
        if (!alone)
            table_rank_end(ranks, pair->b, &slow->other);
    }
    return 0;
}

struct found {
    const struct table_rank *ranks;
    unsigned count;
    double *far, *near;
    struct slowest slowest;
};

static int judge(void *to, const double *times, size_t *ret_suspects, struct drarun_error *err)
{
    struct found *found = to;
    part(found->ranks, found->count, times, found->far, found->near);
    slowest_done(&found->slowest);
    if (slowest_find(found->far, found->count, &found->slowest) < 0)
        return error_set(err, ENOMEM, "out of memory");
    *ret_suspects = found->slowest.suspects + found->slowest.pair_count;
    return 0;
}

static unsigned partner(const void *arg, unsigned rank, unsigned round)
{
    const unsigned *ranks = arg;
    return round_partner(rank, round, *ranks);
}

static int probe(const struct measure_case *m, const struct measure_memory *memory,
                 const struct probe_plan *plan, struct found *found, struct probed *probed,
                 struct drarun_error *err)
{
    const struct meeting meeting = {.rounds = rounds_of(found->count),
                                    .partner = partner,
                                    .arg = &found->count,
                                    .what = "all pairs of ranks",
                                    .judge = judge,
                                    .to = found};
    int rc = meeting_hold(&meeting, m, memory, plan, err);
    if (rc == 0 && m->world->rank == 0 && tell(&found->slowest, found->ranks, probed) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    return rc < 0 ? rc : rail_probe(m, memory, plan, found->ranks, found->near, probed, err);
}

int probe_pairs(const struct measure_case *m, const struct measure_memory *memory,
                const struct probe_plan *plan, const struct table_rank *ranks,
                struct probed *ret_probed, struct drarun_error *err)
{
    unsigned count = m->world->ranks;
    cleanup_free double *far = calloc((size_t)count * count, sizeof *far);
    cleanup_free double *near = calloc((size_t)count * count, sizeof *near);
    struct found found = {.ranks = ranks, .count = count, .far = far, .near = near};
    bool crowded = false;
    if (!far || !near)
        return error_set(err, ENOMEM, "out of memory");
    int rc = are_crowded(m, ranks, &crowded, err);
    if (rc == 0 && crowded)
        *ret_probed =
            (struct probed){.known = true, .why_not = "ranks share CPUs, which hides who is slow"};
    if (rc == 0 && !crowded)
        rc = probe(m, memory, plan, &found, ret_probed, err);
    slowest_done(&found.slowest);
    return rc;
}
