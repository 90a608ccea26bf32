/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "benchmarks/bench/pattern.h"

#define COUNT 1500u

/* In two orders, as a ring and a tree would have it, the reduction of what ranks have is what is
 * expected. */
static void test_exact(void **state)
{
    static const unsigned sizes[] = {2, 3, 8, 64, 300};
    static char all[COUNT * 8], backwards[COUNT * 8], one[COUNT * 8], wanted[COUNT * 8];
    (void)state;
    for (unsigned type = 0; type < ELEMENTS; type++) {
        for (unsigned op = 0; op < REDUCE_AVG; op++) {
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                const struct pattern p = {(enum element)type, (enum reduction)op, sizes[i], 7};
                pattern_fill(&p, 0, 13, COUNT, all);
                pattern_fill(&p, sizes[i] - 1, 13, COUNT, backwards);
                for (unsigned rank = 1; rank < sizes[i]; rank++) {
                    pattern_fill(&p, rank, 13, COUNT, one);
                    element_reduce(p.type, p.op, all, one, COUNT);
                    pattern_fill(&p, sizes[i] - 1 - rank, 13, COUNT, one);
                    element_reduce(p.type, p.op, backwards, one, COUNT);
                }
                pattern_reduced(&p, 13, COUNT, wanted);
                assert_int_equal(pattern_wrong(p.type, 0, all, wanted, COUNT), 0);
                assert_int_equal(pattern_wrong(p.type, 0, backwards, wanted, COUNT), 0);
            }
        }
    }
}

static size_t differing(const struct pattern *p, unsigned a_rank, size_t a_first,
                        const struct pattern *q, unsigned b_rank, size_t b_first)
{
    static char a[COUNT * 8], b[COUNT * 8];
    pattern_fill(p, a_rank, a_first, COUNT, a);
    pattern_fill(q, b_rank, b_first, COUNT, b);
    return pattern_wrong(p->type, 0, a, b, COUNT);
}

/* Data of another rank, place or round, as a wrong transfer leaves it, is not taken for right. */
static void test_mistakes_are_seen(void **state)
{
    (void)state;
    for (unsigned type = 0; type < ELEMENTS; type++) {
        for (unsigned ranks = 1; ranks <= 300; ranks += 299) {
            const struct pattern p = {(enum element)type, REDUCE_SUM, ranks, 1};
            const struct pattern next = {(enum element)type, REDUCE_SUM, ranks, 2};
            assert_true(differing(&p, 0, 0, &p, 1, 0) > 0);
            assert_true(differing(&p, 0, 0, &p, 0, 1) > 0);
            assert_true(differing(&p, 0, 0, &next, 0, 0) > 0);
        }
    }
}

static void test_wrong_is_counted(void **state)
{
    float got[3] = {1, 2, 3}, want[3] = {1, 2.5f, 3.0001f};
    (void)state;
    assert_int_equal(pattern_wrong(ELEMENT_FLOAT, 0, got, want, 3), 2);
    assert_int_equal(pattern_wrong(ELEMENT_FLOAT, 1e-3, got, want, 3), 1);
    assert_int_equal(pattern_wrong(ELEMENT_FLOAT, 0, got, got, 3), 0);
}

static void test_average(void **state)
{
    const struct pattern whole = {ELEMENT_INT32, REDUCE_AVG, 3, 1},
                         real = {ELEMENT_HALF, REDUCE_AVG, 3, 1};
    int32_t one, sum = 0, average;
    (void)state;
    for (unsigned rank = 0; rank < 3; rank++) {
        pattern_fill(&whole, rank, 5, 1, &one);
        sum += one;
    }
    pattern_reduced(&whole, 5, 1, &average);
    assert_int_equal(average, sum / 3);
    assert_true(pattern_tolerance(&real) > 0 && pattern_tolerance(&whole) == 0);
}

/* With the factor of each rank. */
static void test_mulsum(void **state)
{
    (void)state;
    for (unsigned type = 0; type < ELEMENTS; type++) {
        const struct pattern p = {(enum element)type, REDUCE_MULSUM, 3, 1};
        for (size_t place = 0; place < 64; place++) {
            char one[8], want[8];
            double sum = 0;
            for (unsigned rank = 0; rank < 3; rank++) {
                pattern_fill(&p, rank, place, 1, one);
                sum += pattern_scalar(rank) * element_load(p.type, one);
            }
            pattern_reduced(&p, place, 1, want);
            assert_true(sum <= element_whole_max(p.type));
            assert_true(element_load(p.type, want) == sum);
        }
    }
    assert_true(pattern_scalar(0) != pattern_scalar(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_mistakes_are_seen),
        cmocka_unit_test(test_wrong_is_counted),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_mulsum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
