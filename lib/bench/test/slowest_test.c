/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/bench/slowest.h"

#define RUNS 200u

/* From a fixed seed: 0 to 1. */
static double any(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 0x1p53;
}

/* All pairs of `ranks`: 10 ms, late by an exponential time of `noise` ms on average; those of rank
 * `slow` by 10 % more. */
static double *pairs(size_t ranks, size_t slow, double noise, uint64_t *seed)
{
    double *times = calloc(ranks * ranks, sizeof *times);
    assert_non_null(times);
    for (size_t a = 0; a < ranks; a++)
        for (size_t b = a + 1; b < ranks; b++) {
            double ms = (a == slow || b == slow ? 11 : 10) - noise * log(1 - any(seed));
            times[a * ranks + b] = times[b * ranks + a] = ms / 1000;
        }
    return times;
}

/* 64 ranks, and noise as large as the difference: 200 of 200, and nobody else. */
static void names_the_slow_rank(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (size_t run = 0; run < RUNS; run++) {
        struct slowest s;
        double *times = pairs(64, run % 64, 1.0, &seed);
        assert_int_equal(slowest_find(times, 64, &s), 0);
        assert_int_equal(s.rank_count, 1);
        assert_int_equal(s.ranks[0].rank, run % 64);
        assert_true(s.ranks[0].seconds > 1.05 * s.ranks[0].usual);
        slowest_done(&s);
        free(times);
    }
}

static void names_nobody_without_reason(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (size_t run = 0; run < RUNS; run++) {
        for (size_t ranks = 2; ranks <= 64; ranks += 31) {
            struct slowest s;
            double *times = pairs(ranks, ranks, ranks > 32 ? 2.0 : 0.05, &seed);
            assert_int_equal(slowest_find(times, ranks, &s), 0);
            assert_int_equal(s.rank_count, 0);
            slowest_done(&s);
            free(times);
        }
    }
}

/* Slower by enough in times that spread too far to name anybody: worth another look. */
static void suspects_before_it_names(void **state)
{
    (void)state;
    uint64_t seed = 17;
    struct slowest s;
    double *times = pairs(16, 5, 6.0, &seed);
    assert_int_equal(slowest_find(times, 16, &s), 0);
    assert_int_equal(s.rank_count, 0);
    assert_true(s.suspects > 0);
    slowest_done(&s);
    free(times);
    times = pairs(64, 5, 0.1, &seed);
    assert_int_equal(slowest_find(times, 64, &s), 0);
    assert_true(s.rank_count == 1 && s.suspects == 1);
    slowest_done(&s);
    free(times);
}

/* Two ranks of one node: both, the worse first. A cable between two others: that pair alone. */
static void tells_ranks_from_paths(void **state)
{
    (void)state;
    uint64_t seed = 13;
    struct slowest s;
    double *times = pairs(8, 8, 0.05, &seed);
    for (size_t i = 0; i < 8; i++) {
        times[3 * 8 + i] *= i == 3 ? 1 : 1.5;
        times[i * 8 + 3] = times[3 * 8 + i];
    }
    for (size_t i = 0; i < 8; i++) {
        times[5 * 8 + i] *= i == 5 ? 1 : 3;
        times[i * 8 + 5] = times[5 * 8 + i];
    }
    times[1 * 8 + 2] = times[2 * 8 + 1] = 0.030;
    assert_int_equal(slowest_find(times, 8, &s), 0);
    assert_int_equal(s.rank_count, 2);
    assert_int_equal(s.ranks[0].rank, 5);
    assert_int_equal(s.ranks[1].rank, 3);
    assert_int_equal(s.pair_count, 1);
    assert_int_equal(s.pairs[0].a, 1);
    assert_int_equal(s.pairs[0].b, 2);
    assert_int_equal(s.pairs_seen, 28);
    slowest_done(&s);
    free(times);
}

/* Nothing measured, one rank, none at all. */
static void takes_what_there_is(void **state)
{
    (void)state;
    const double nothing[9] = {0};
    struct slowest s;
    for (size_t ranks = 0; ranks <= 3; ranks++) {
        assert_int_equal(slowest_find(nothing, ranks, &s), 0);
        assert_int_equal(s.rank_count + s.pair_count + s.pairs_seen, 0);
        slowest_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_slow_rank),      cmocka_unit_test(names_nobody_without_reason),
        cmocka_unit_test(suspects_before_it_names), cmocka_unit_test(tells_ranks_from_paths),
        cmocka_unit_test(takes_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
