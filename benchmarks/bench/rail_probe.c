/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/rail_probe.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/rails.h"

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

/* ---- what is told ---- */

static int add(struct probed *to, enum probed_kind kind, double seconds, double usual,
               struct probed_slow **ret)
{
    struct probed_slow *slow = probed_add(to);
    if (!slow)
        return -ENOMEM;
    slow->kind = kind;
    slow->seconds = seconds;
    slow->usual = usual;
    *ret = slow;
    return 0;
}

static void take_rank(const struct rails *r, const struct table_rank *ranks, unsigned rank,
                      struct probed_end *to)
{
    table_rank_end(ranks, rank, to);
    to->rail = (int)r->rail[rank];
}

static int tell(const struct found *found, const struct table_rank *ranks, struct probed *to)
{
    const struct rails *r = found->rails;
    const struct rails_slow *slow = &found->slow;
    struct probed_slow *made;
    int rc = 0;
    to->rails = r->each;
    to->hosts = r->hosts;
    to->rail_pairs = slow->pairs_seen;
    for (size_t i = 0; rc == 0 && i < slow->host_count; i++) {
        const struct rails_host *host = &slow->hosts[i];
        rc = add(to, PROBED_HOST, host->seconds, host->usual, &made);
        if (rc == 0)
            table_rank_end(ranks, r->rank[host->host * r->each], &made->at);
        if (rc == 0)
            made->at.rank = -1; /* all of it */
    }
    for (size_t i = 0; rc == 0 && i < slow->nic_count; i++) {
        rc = add(to, PROBED_NIC, slow->nics[i].seconds, slow->nics[i].usual, &made);
        if (rc == 0)
            take_rank(r, ranks, slow->nics[i].rank, &made->at);
    }
    for (size_t i = 0; rc == 0 && i < slow->path_count; i++) {
        rc = add(to, PROBED_PATH, slow->paths[i].seconds, slow->paths[i].usual, &made);
        if (rc == 0)
            take_rank(r, ranks, slow->paths[i].a, &made->at);
        if (rc == 0)
            take_rank(r, ranks, slow->paths[i].b, &made->other);
    }
    return rc;
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
               struct probed *probed, struct drarun_error *err)
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
        if (rc == 0 && m->world->rank == 0 && tell(&found, ranks, probed) < 0)
            rc = error_set(err, ENOMEM, "out of memory");
    }
    rails_slow_done(&found.slow);
    rails_done(&rails);
    return rc;
}
