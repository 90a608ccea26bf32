/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/rails.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define ENOUGH_HOSTS 4u /* then a rank has three partners on its own rail */
#define NEIGHBOURS 4u

unsigned rounds_of(unsigned count)
{
    return count < 2 ? 0 : count % 2 ? count : count - 1;
}

/* The last one stays, the others turn around it. */
unsigned round_partner(unsigned who, unsigned round, unsigned count)
{
    unsigned circle = rounds_of(count), last = circle;
    if (who == last)
        return round;
    unsigned partner = (2 * round + circle - who) % circle;
    if (partner != who)
        return partner;
    return last < count ? last : who;
}

/* ---- who is where ---- */

void rails_done(struct rails *rails)
{
    free(TAKE_PTR(rails->host));
    free(TAKE_PTR(rails->rail));
    free(TAKE_PTR(rails->rank));
    *rails = (struct rails){0};
}

/* Numbers hosts in the order of their first ranks, and a host's ranks in theirs. */
static void number(const char *const *hosts, struct rails *r)
{
    for (unsigned i = 0; i < r->ranks; i++) {
        unsigned first = 0;
        r->rail[i] = 0;
        while (strcmp(hosts[first], hosts[i]) != 0)
            first++;
        for (unsigned k = first; k < i; k++)
            r->rail[i] += strcmp(hosts[k], hosts[i]) == 0;
        r->host[i] = first == i ? r->hosts++ : r->host[first];
    }
}

static bool is_even(const struct rails *r, unsigned each)
{
    unsigned last = 0;
    for (unsigned i = 0; i < r->ranks; i++) {
        if (r->rail[i] >= each)
            return false;
        last += r->rail[i] + 1 == each;
    }
    return last == r->hosts;
}

int rails_of(const char *const *hosts, unsigned ranks, struct rails *ret_rails)
{
    struct rails r = {.ranks = ranks,
                      .host = calloc(ranks + 1, sizeof *r.host),
                      .rail = calloc(ranks + 1, sizeof *r.rail),
                      .rank = calloc(ranks + 1, sizeof *r.rank)};
    if (!r.host || !r.rail || !r.rank) {
        rails_done(&r);
        return -ENOMEM;
    }
    number(hosts, &r);
    unsigned each = r.hosts ? ranks / r.hosts : 0;
    if (r.hosts > 1 && ranks % r.hosts == 0 && is_even(&r, each))
        r.each = each;
    for (unsigned i = 0; r.each && i < ranks; i++)
        r.rank[r.host[i] * r.each + r.rail[i]] = i;
    *ret_rails = r;
    return 0;
}

static unsigned shifts(const struct rails *r)
{
    return r->hosts >= ENOUGH_HOSTS ? 1 : r->each < NEIGHBOURS ? r->each : NEIGHBOURS;
}

unsigned rails_rounds(const struct rails *r)
{
    return r->each ? rounds_of(r->hosts) * shifts(r) : 0;
}

unsigned rails_partner(const struct rails *r, unsigned rank, unsigned round)
{
    assert(r->each > 0 && r->hosts > 1);
    unsigned host = r->host[rank], shift = round / rounds_of(r->hosts);
    unsigned partner = round_partner(host, round % rounds_of(r->hosts), r->hosts);
    if (partner == host)
        return rank;
    unsigned rail = (r->rail[rank] + (host < partner ? shift : r->each - shift)) % r->each;
    return r->rank[partner * r->each + rail];
}

/* ---- who is slow ---- */

static bool names(const struct slowest *s, unsigned rank)
{
    for (size_t i = 0; i < s->rank_count; i++)
        if (s->ranks[i].rank == rank)
            return true;
    return false;
}

/* All its rails, of which a machine with one tells nothing. */
static void name_hosts(const struct rails *r, const struct slowest *far, struct rails_slow *slow)
{
    for (unsigned host = 0; r->each > 1 && host < r->hosts; host++) {
        struct rails_host found = {.host = host};
        unsigned count = 0;
        for (size_t i = 0; i < far->rank_count; i++)
            if (r->host[far->ranks[i].rank] == host) {
                found.seconds = far->ranks[i].seconds; /* the last is the least */
                found.usual = far->ranks[i].usual;
                count++;
            }
        if (count == r->each)
            slow->hosts[slow->host_count++] = found;
    }
}

static bool is_named_host(const struct rails_slow *slow, unsigned host)
{
    for (size_t i = 0; i < slow->host_count; i++)
        if (slow->hosts[i].host == host)
            return true;
    return false;
}

int rails_find(const struct rails *r, const double *far, const double *near,
               struct rails_slow *ret_slow)
{
    struct slowest of_far = {0}, of_near = {0};
    struct rails_slow slow = {.nics = calloc(r->ranks + 1, sizeof *slow.nics),
                              .hosts = calloc(r->hosts + 1, sizeof *slow.hosts)};
    int rc = slow.nics && slow.hosts ? 0 : -ENOMEM;
    rc = rc < 0 ? rc : slowest_find(far, r->ranks, &of_far);
    rc = rc < 0 ? rc : slowest_find(near, r->ranks, &of_near);
    if (rc == 0)
        name_hosts(r, &of_far, &slow);
    for (size_t i = 0; rc == 0 && i < of_far.rank_count; i++)
        if (!names(&of_near, of_far.ranks[i].rank) &&
            !is_named_host(&slow, r->host[of_far.ranks[i].rank]))
            slow.nics[slow.nic_count++] = of_far.ranks[i];
    slow.paths = TAKE_PTR(of_far.pairs);
    slow.path_count = of_far.pair_count;
    slow.pairs_seen = of_far.pairs_seen;
    slow.suspects = of_far.suspects;
    slowest_done(&of_far);
    slowest_done(&of_near);
    if (rc < 0)
        rails_slow_done(&slow);
    else
        *ret_slow = slow;
    return rc;
}

void rails_slow_done(struct rails_slow *slow)
{
    free(TAKE_PTR(slow->nics));
    free(TAKE_PTR(slow->hosts));
    free(TAKE_PTR(slow->paths));
    *slow = (struct rails_slow){0};
}
