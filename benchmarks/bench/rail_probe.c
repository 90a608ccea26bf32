/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/rail_probe.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/rails.h"

#define NAMED_MAX 8u

struct found {
    const struct rails *rails;
    const double *near;
    struct rails_slow slow;
};

static unsigned partner(const void *arg, unsigned rank, unsigned round)
{
    return rails_partner(arg, rank, round);
}

static int judge(void *to, const double *times, size_t *ret_suspects, struct drarun_error *err)
{
    struct found *found = to;
    rails_slow_done(&found->slow);
    if (rails_find(found->rails, times, found->near, &found->slow) < 0)
        return error_set(err, ENOMEM, "out of memory");
    *ret_suspects = found->slow.suspects + found->slow.path_count;
    return 0;
}

/* ---- words ---- */

static const char *host_name(const struct table_rank *rank)
{
    return rank->place.node[0] ? rank->place.node : rank->host;
}

/* The NIC, where it is known which one this rank uses. */
static const char *nic_name(const struct table_rank *rank)
{
    return rank->place.nearest[0] ? rank->place.nearest : "its NIC";
}

static void print_times(double seconds, double usual, FILE *out)
{
    fprintf(out, "%.2f us, others' %.2f: %+.1f %%\n", seconds * 1e6, usual * 1e6,
            (seconds / usual - 1) * 100);
}

static void print(const struct found *found, const struct table_rank *ranks, FILE *out)
{
    const struct rails *r = found->rails;
    const struct rails_slow *slow = &found->slow;
    bool any = slow->nic_count + slow->host_count + slow->path_count > 0;
    fprintf(out, "# Rails of the hosts   : %u on each of %u hosts, %zu pairs measured%s\n", r->each,
            r->hosts, slow->pairs_seen, any ? "" : "; no NIC is slower than the rest");
    for (size_t i = 0; i < slow->host_count && i < NAMED_MAX; i++) {
        const struct table_rank *at = &ranks[r->rank[slow->hosts[i].host * r->each]];
        fprintf(out, "# Slow host            : %s: all its rails: its pairs take at least ",
                host_name(at));
        print_times(slow->hosts[i].seconds, slow->hosts[i].usual, out);
    }
    for (size_t i = 0; i < slow->nic_count && i < NAMED_MAX; i++) {
        unsigned rank = slow->nics[i].rank;
        fprintf(out, "# Slow NIC             : rail %u of %s (%s, rank %u): its pairs take ",
                r->rail[rank], host_name(&ranks[rank]), nic_name(&ranks[rank]), rank);
        print_times(slow->nics[i].seconds, slow->nics[i].usual, out);
    }
    for (size_t i = 0; i < slow->path_count && i < NAMED_MAX; i++) {
        unsigned a = slow->paths[i].a, b = slow->paths[i].b;
        fprintf(out, "# Slow path            : rail %u of %s and rail %u of %s: ", r->rail[a],
                host_name(&ranks[a]), r->rail[b], host_name(&ranks[b]));
        print_times(slow->paths[i].seconds, slow->paths[i].usual, out);
    }
    fflush(out);
}

/* ---- all ---- */

static int find_rails(const struct table_rank *ranks, unsigned count, struct rails *ret,
                      struct drarun_error *err)
{
    cleanup_free const char **hosts = calloc(count + 1, sizeof *hosts);
    for (unsigned i = 0; hosts && i < count; i++)
        hosts[i] = ranks[i].host;
    return hosts && rails_of(hosts, count, ret) == 0 ? 0 : error_set(err, ENOMEM, "out of memory");
}

int rail_probe(const struct measure_case *m, const struct measure_memory *memory,
               const struct probe_plan *plan, const struct table_rank *ranks, const double *near,
               FILE *out, struct drarun_error *err)
{
    struct rails rails = {0};
    struct found found = {.rails = &rails, .near = near};
    int rc = find_rails(ranks, m->world->ranks, &rails, err);
    const struct meeting meeting = {.rounds = rails_rounds(&rails),
                                    .partner = partner,
                                    .arg = &rails,
                                    .what = "pairs of each rail",
                                    .judge = judge,
                                    .to = &found};
    if (rc == 0 && rails.each > 1) {
        rc = meeting_hold(&meeting, m, memory, plan, err);
        if (rc == 0 && m->world->rank == 0)
            print(&found, ranks, out);
    }
    rails_slow_done(&found.slow);
    rails_done(&rails);
    return rc;
}
