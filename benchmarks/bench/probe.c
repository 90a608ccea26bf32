/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/slowest.h"

#define NAMED_MAX 8u

unsigned probe_rounds(unsigned ranks)
{
    return ranks < 2 ? 0 : ranks % 2 ? ranks : ranks - 1;
}

/* The circle method: the last one stays, the others turn around it. */
unsigned probe_partner(unsigned rank, unsigned round, unsigned ranks)
{
    unsigned circle = probe_rounds(ranks), last = circle;
    if (rank == last)
        return round;
    unsigned partner = (2 * round + circle - rank) % circle;
    if (partner != rank)
        return partner;
    return last < ranks ? last : rank;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int one_pair(const struct measure_case *m, const struct transfer *t, unsigned calls,
                    unsigned partner, double *ret_least, struct drarun_error *err)
{
    double least = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i <= calls; i++) {
        double begin = now();
        rc = m->backend->sendrecv(t, partner, partner, err);
        rc = rc < 0 ? rc : m->backend->finish(err);
        double took = now() - begin;
        if (i > 0 && (least <= 0 || took < least)) /* the first one connects */
            least = took;
    }
    if (rc == 0)
        *ret_least = least;
    return rc;
}

/* Fills this rank's row. */
static int meet_all(const struct measure_case *m, const struct measure_memory *memory,
                    const struct probe_plan *plan, double *row, struct drarun_error *err)
{
    unsigned ranks = m->world->ranks, all = probe_rounds(ranks);
    unsigned rounds = plan->rounds < all ? plan->rounds : all;
    size_t bytes = plan->bytes < memory->size ? plan->bytes : memory->size;
    const struct transfer t = {memory->send, memory->recv, bytes, ELEMENT_INT8, REDUCE_SUM, 0};
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < rounds; i++) {
        unsigned round = (unsigned)((uint64_t)i * all / rounds);
        unsigned partner = probe_partner(m->world->rank, round, ranks);
        if (m->progress)
            progress_step(m->progress, false, "all pairs of ranks");
        rc = m->backend->barrier(err);
        if (rc == 0 && partner != m->world->rank)
            rc = one_pair(m, &t, plan->calls, partner, &row[partner], err);
    }
    return rc;
}

/* Between hosts paths differ from those inside: where there are several, they alone are compared.
 */
static void leave_out_inner(const struct table_rank *ranks, unsigned count, double *times)
{
    bool several = false;
    for (unsigned i = 1; i < count; i++)
        several |= strcmp(ranks[0].host, ranks[i].host) != 0;
    for (unsigned a = 0; several && a < count; a++)
        for (unsigned b = 0; b < count; b++)
            if (strcmp(ranks[a].host, ranks[b].host) == 0)
                times[a * count + b] = 0;
}

/* Both measured the same exchange, each with its own beginning. */
static void make_symmetric(unsigned count, double *times)
{
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = a + 1; b < count; b++) {
            double x = times[a * count + b], y = times[b * count + a];
            times[a * count + b] = times[b * count + a] = x < y ? x : y;
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

static void print(const struct slowest *s, const struct table_rank *ranks, FILE *out)
{
    fprintf(out, "# All pairs of ranks   : %zu measured", s->pairs_seen);
    fputs(s->rank_count + s->pair_count == 0 ? "; none is slower than the rest\n" : "\n", out);
    for (size_t i = 0; i < s->rank_count && i < NAMED_MAX; i++) {
        const struct slowest_rank *r = &s->ranks[i];
        const struct table_rank *at = &ranks[r->rank];
        fprintf(out,
                "# Slow rank            : %u on %s (%s%s%s): its pairs take %.2f us, others' %.2f: "
                "%+.1f %%\n",
                r->rank, at->host, at->device, at->address[0] ? " " : "", at->address,
                r->seconds * 1e6, r->usual * 1e6, (r->seconds / r->usual - 1) * 100);
    }
    for (size_t i = 0; i < s->pair_count && i < NAMED_MAX; i++) {
        const struct slowest_pair *p = &s->pairs[i];
        fprintf(out,
                "# Slow pair            : %u on %s and %u on %s: %.2f us, others' %.2f: %+.1f %%\n",
                p->a, ranks[p->a].host, p->b, ranks[p->b].host, p->seconds * 1e6, p->usual * 1e6,
                (p->seconds / p->usual - 1) * 100);
    }
    fflush(out);
}

static void take_least(double *row, const double *again, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (again[i] > 0 && again[i] < row[i])
            row[i] = again[i];
}

/* On rank 0; the others know nothing of it. */
static int find(const struct measure_case *m, const struct table_rank *ranks, const double *row,
                double *all, struct slowest *ret, struct drarun_error *err)
{
    unsigned count = m->world->ranks;
    int rc = m->backend->share(row, all, count * sizeof *row, err);
    if (rc < 0 || m->world->rank != 0)
        return rc;
    make_symmetric(count, all);
    leave_out_inner(ranks, count, all);
    slowest_done(ret);
    return slowest_find(all, count, ret) < 0 ? error_set(err, ENOMEM, "out of memory") : 0;
}

int probe_pairs(const struct measure_case *m, const struct measure_memory *memory,
                const struct probe_plan *plan, const struct table_rank *ranks, FILE *out,
                struct drarun_error *err)
{
    unsigned count = m->world->ranks;
    struct slowest slowest = {0};
    double named = 1;
    cleanup_free double *row = calloc(count, sizeof *row);
    cleanup_free double *again = calloc(count, sizeof *again);
    cleanup_free double *all = calloc((size_t)count * count, sizeof *all);
    if (!row || !again || !all)
        return error_set(err, ENOMEM, "out of memory");
    bool crowded = false;
    int rc = are_crowded(m, ranks, &crowded, err);
    if (rc < 0 || crowded) {
        if (rc == 0 && m->world->rank == 0)
            fputs("# All pairs of ranks   : not measured: ranks share CPUs, which hides who is "
                  "slow\n",
                  out);
        return rc;
    }
    for (unsigned pass = 0; rc == 0 && named > 0 && pass < plan->passes; pass++) {
        rc = meet_all(m, memory, plan, pass ? again : row, err);
        if (pass)
            take_least(row, again, count);
        rc = rc < 0 ? rc : find(m, ranks, row, all, &slowest, err);
        named = (double)(slowest.rank_count + slowest.pair_count);
        rc = rc < 0 ? rc : m->backend->agree(&named, 1, AGREE_MAX, err);
    }
    if (rc == 0 && m->world->rank == 0)
        print(&slowest, ranks, out);
    slowest_done(&slowest);
    return rc;
}
