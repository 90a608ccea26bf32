/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jobs/gang/silence.h"

#define MIB (UINT64_C(1) << 20)

static void each_sign_of_life_counts(void **state)
{
    (void)state;
    const struct silence_counts signs[] = {{.rdma_bytes = MIB},
                                           {.net_bytes = MIB},
                                           {.loop_bytes = MIB},
                                           {.output_bytes = 1},
                                           {.cpu_us = 5000000}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        struct silence s = {0};
        struct silence_counts none = {0};
        assert_int_equal(silence_step(&s, &none, 2, 0, 60000), SILENCE_NOTHING);
        assert_int_equal(silence_step(&s, &none, 2, 50000, 60000), SILENCE_NOTHING);
        assert_int_equal(silence_step(&s, &signs[i], 2, 59000, 60000), SILENCE_NOTHING);
        assert_int_equal(silence_step(&s, &signs[i], 2, 110000, 60000), SILENCE_NOTHING);
        assert_int_equal(silence_lasts_ms(&s, 110000), 51000);
        assert_int_equal(silence_step(&s, &signs[i], 2, 119000, 60000), SILENCE_HANGS);
    }
}

static void said_once_and_taken_back(void **state)
{
    (void)state;
    struct silence s = {0};
    struct silence_counts c = {.cpu_us = 1000};
    silence_step(&s, &c, 1, 0, 1000);
    assert_int_equal(silence_step(&s, &c, 1, 1000, 1000), SILENCE_HANGS);
    assert_int_equal(silence_step(&s, &c, 1, 9000, 1000), SILENCE_NOTHING);
    c.output_bytes = 10;
    assert_int_equal(silence_step(&s, &c, 1, 9500, 1000), SILENCE_RESUMED);
    assert_int_equal(silence_step(&s, &c, 1, 10500, 1000), SILENCE_HANGS);
}

/* Pings, and programs that look at a clock. */
static void idling_is_silence(void **state)
{
    (void)state;
    struct silence s = {0};
    struct silence_counts c = {0};
    silence_step(&s, &c, 4, 0, 30000);
    for (int i = 1; i < 3; i++) {
        c.net_bytes += 4 * 10 * 1024; /* 1 KiB/s a worker */
        c.cpu_us += 4 * 10 * 10000;   /* 1 % */
        assert_int_equal(silence_step(&s, &c, 4, i * 10000, 30000), SILENCE_NOTHING);
    }
    assert_int_equal(silence_step(&s, &c, 4, 30000, 30000), SILENCE_HANGS);
}

static void never(void **state)
{
    (void)state;
    struct silence s = {0};
    struct silence_counts c = {0};
    silence_step(&s, &c, 1, 0, 0);
    assert_int_equal(silence_step(&s, &c, 1, INT64_C(1) << 40, 0), SILENCE_NOTHING);
}

/* A counter that starts anew is no negative number. */
static void counters_start_anew(void **state)
{
    (void)state;
    struct silence s = {0};
    struct silence_counts c = {.net_bytes = 500 * MIB}, anew = {.net_bytes = 100};
    silence_step(&s, &c, 1, 0, 1000);
    assert_int_equal(silence_step(&s, &anew, 1, 1000, 1000), SILENCE_HANGS);
    assert_false(silence_fell_back(&s, 1));
}

static void fallback(void **state)
{
    (void)state;
    static const struct {
        uint64_t rdma, net;
        bool fell;
    } table[] = {
        {0, 600 * MIB, true},
        {10 * MIB, 600 * MIB, true},
        {0, 500 * MIB, false},         /* two workers: not enough to judge */
        {100 * MIB, 600 * MIB, false}, /* most of it may be data loading */
        {8192 * MIB, 4096 * MIB, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct silence s = {0};
        struct silence_counts c = {.rdma_bytes = 7 * MIB, .net_bytes = 9 * MIB};
        silence_step(&s, &c, 2, 0, 0);
        c.rdma_bytes += table[i].rdma;
        c.net_bytes += table[i].net;
        silence_step(&s, &c, 2, 1000, 0);
        assert_int_equal(silence_fell_back(&s, 2), table[i].fell);
        assert_false(silence_fell_back(&s, 2)); /* once */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sign_of_life_counts), cmocka_unit_test(said_once_and_taken_back),
        cmocka_unit_test(idling_is_silence),        cmocka_unit_test(never),
        cmocka_unit_test(counters_start_anew),      cmocka_unit_test(fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
