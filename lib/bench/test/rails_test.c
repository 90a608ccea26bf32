/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/rails.h"

#define MEET_MAX 65u
#define RUNS 100u
#define NOBODY 1000u

/* In every round each has one partner, who has it; over all rounds each has had every other one. */
static void all_meet_once(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= MEET_MAX; count++) {
        bool met[MEET_MAX][MEET_MAX] = {0};
        for (unsigned round = 0; round < rounds_of(count); round++) {
            unsigned pauses = 0;
            for (unsigned who = 0; who < count; who++) {
                unsigned partner = round_partner(who, round, count);
                assert_true(partner < count);
                assert_int_equal(round_partner(partner, round, count), who);
                assert_false(partner != who && met[who][partner]);
                met[who][partner] = true;
                pauses += partner == who;
            }
            assert_int_equal(pauses, count % 2);
        }
        for (unsigned a = 0; a < count; a++)
            for (unsigned b = 0; b < count; b++)
                assert_true(a == b || met[a][b]);
    }
}

/* spread: ranks go round the hosts, as --map-by node. */
static struct rails make(unsigned hosts, unsigned each, bool spread)
{
    struct rails r;
    unsigned ranks = hosts * each;
    char(*names)[16] = calloc(ranks, sizeof *names);
    const char **list = calloc(ranks, sizeof *list);
    assert_true(names && list);
    for (unsigned i = 0; i < ranks; i++) {
        snprintf(names[i], sizeof names[i], "host-%u", spread ? i % hosts : i / each);
        list[i] = names[i];
    }
    assert_int_equal(rails_of(list, ranks, &r), 0);
    free(list);
    free(names);
    return r;
}

static void partners(void **state)
{
    (void)state;
    for (unsigned hosts = 2; hosts < 9; hosts++)
        for (unsigned each = 1; each < 9; each++) {
            struct rails r = make(hosts, each, (hosts + each) % 2);
            assert_int_equal(r.hosts, hosts);
            assert_int_equal(r.each, each);
            for (unsigned round = 0; round < rails_rounds(&r); round++)
                for (unsigned i = 0; i < r.ranks; i++) {
                    unsigned partner = rails_partner(&r, i, round);
                    assert_true(partner < r.ranks);
                    assert_int_equal(rails_partner(&r, partner, round), i);
                    assert_true(partner == i ? hosts % 2 : r.host[partner] != r.host[i]);
                    assert_true(partner == i || hosts < 4 || r.rail[partner] == r.rail[i]);
                }
            rails_done(&r);
        }
}

static void uneven_hosts_have_no_rails(void **state)
{
    static const char *const uneven[] = {"a", "a", "b", "c"}, *const one[] = {"a", "a"},
                             *const odd[] = {"a", "b", "b", "a", "a", "b", "b", "b"};
    struct rails r;
    (void)state;
    assert_int_equal(rails_of(uneven, 4, &r), 0);
    assert_true(r.hosts == 3 && r.each == 0 && rails_rounds(&r) == 0);
    rails_done(&r);
    assert_int_equal(rails_of(one, 2, &r), 0);
    assert_true(r.hosts == 1 && r.each == 0 && rails_rounds(&r) == 0);
    rails_done(&r);
    assert_int_equal(rails_of(odd, 8, &r), 0);
    assert_true(r.hosts == 2 && r.each == 0);
    rails_done(&r);
    assert_int_equal(rails_of(one, 0, &r), 0);
    assert_int_equal(rails_rounds(&r), 0);
    rails_done(&r);
}

/* From a fixed seed: 0 to 1. */
static double any(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 0x1p53;
}

struct fault {
    unsigned nic, rank, host; /* by rank, rank, host; NOBODY */
    unsigned path[2];         /* two ranks */
    double factor;
};

static double took(const struct rails *r, unsigned a, unsigned b, const struct fault *f,
                   uint64_t *seed)
{
    bool far = r->host[a] != r->host[b];
    double ms = far ? 10 : 1;
    bool slow = (far && (f->nic == a || f->nic == b)) || f->rank == a || f->rank == b ||
                (far && (f->host == r->host[a] || f->host == r->host[b])) ||
                (f->path[0] == a && f->path[1] == b) || (f->path[0] == b && f->path[1] == a);
    return ms * (slow ? f->factor : 1) * (1 + 0.01 * any(seed)) / 1000;
}

static struct rails_slow measure(const struct rails *r, const struct fault *f, uint64_t *seed)
{
    struct rails_slow slow;
    size_t n = r->ranks;
    double *far = calloc(n * n, sizeof *far), *near = calloc(n * n, sizeof *near);
    assert_true(far && near);
    for (unsigned round = 0; round < rails_rounds(r); round++)
        for (unsigned a = 0; a < n; a++) {
            unsigned b = rails_partner(r, a, round);
            if (a < b)
                far[a * n + b] = far[b * n + a] = took(r, a, b, f, seed);
        }
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = a + 1; b < n; b++)
            if (r->host[a] == r->host[b])
                near[a * n + b] = near[b * n + a] = took(r, a, b, f, seed);
    assert_int_equal(rails_find(r, far, near, &slow), 0);
    free(far);
    free(near);
    return slow;
}

static const struct fault clean = {NOBODY, NOBODY, NOBODY, {NOBODY, NOBODY}, 1};

/* 8 hosts of 8 NICs at 10 %; 2 of 8 at 30 %, as 16 NICs of which a pair has two ends. */
static void names_the_slow_nic(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (unsigned run = 0; run < RUNS; run++) {
        unsigned hosts = run % 3 ? 8 : 2;
        struct rails r = make(hosts, 8, run % 2);
        struct fault f = clean;
        f.nic = run % r.ranks;
        f.factor = hosts == 2 ? 1.3 : 1.1;
        struct rails_slow slow = measure(&r, &f, &seed);
        assert_int_equal(slow.nic_count, 1);
        assert_int_equal(slow.nics[0].rank, f.nic);
        assert_float_equal((float)(slow.nics[0].seconds / slow.nics[0].usual), (float)f.factor,
                           0.02);
        assert_int_equal(slow.host_count, 0);
        assert_int_equal(slow.path_count, 0);
        rails_slow_done(&slow);
        rails_done(&r);
    }
}

static void names_nobody_without_reason(void **state)
{
    uint64_t seed = 5;
    (void)state;
    for (unsigned run = 0; run < RUNS; run++) {
        struct rails r = make(2 + run % 9, 1 + run % 8, run % 2);
        struct rails_slow slow = measure(&r, &clean, &seed);
        assert_int_equal(slow.nic_count + slow.host_count + slow.path_count, 0);
        assert_true(slow.pairs_seen > 0);
        rails_slow_done(&slow);
        rails_done(&r);
    }
}

/* A slow rank is slow at home too; a slow host has all its NICs slow. */
static void tells_nics_from_ranks_and_hosts(void **state)
{
    uint64_t seed = 7;
    (void)state;
    for (unsigned run = 0; run < RUNS; run++) {
        struct rails r = make(6, 4, run % 2);
        struct fault f = clean;
        f.factor = 1.2;
        f.rank = run % r.ranks;
        struct rails_slow slow = measure(&r, &f, &seed);
        assert_int_equal(slow.nic_count + slow.host_count + slow.path_count, 0);
        rails_slow_done(&slow);
        f = clean;
        f.factor = 1.2;
        f.host = run % r.hosts;
        slow = measure(&r, &f, &seed);
        assert_int_equal(slow.nic_count, 0);
        assert_int_equal(slow.host_count, 1);
        assert_int_equal(slow.hosts[0].host, f.host);
        assert_float_equal((float)(slow.hosts[0].seconds / slow.hosts[0].usual), 1.2, 0.02);
        rails_slow_done(&slow);
        rails_done(&r);
    }
}

static void names_a_path(void **state)
{
    uint64_t seed = 9;
    (void)state;
    struct rails r = make(6, 4, false);
    struct fault f = clean;
    f.path[0] = 1;
    f.path[1] = 4 * 3 + 1; /* rail 1 of the fourth host */
    f.factor = 2;
    struct rails_slow slow = measure(&r, &f, &seed);
    assert_int_equal(slow.nic_count + slow.host_count, 0);
    assert_int_equal(slow.path_count, 1);
    assert_true(slow.paths[0].a == 1 && slow.paths[0].b == 13);
    rails_slow_done(&slow);
    rails_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet_once),
        cmocka_unit_test(partners),
        cmocka_unit_test(uneven_hosts_have_no_rails),
        cmocka_unit_test(names_the_slow_nic),
        cmocka_unit_test(names_nobody_without_reason),
        cmocka_unit_test(tells_nics_from_ranks_and_hosts),
        cmocka_unit_test(names_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
