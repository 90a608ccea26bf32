/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "benchmarks/bench/data.h"
#include "lib/base/cleanup.h"

/* A backend whose memory is the program's. */
static unsigned puts_made, gets_made;
static bool tells; /* it compares */

static void put(void *to, const void *from, size_t bytes)
{
    puts_made++;
    memcpy(to, from, bytes);
}

static void get(void *to, const void *from, size_t bytes)
{
    gets_made++;
    memcpy(to, from, bytes);
}

static void copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static bool same(const void *a, const void *b, size_t bytes)
{
    return tells && memcmp(a, b, bytes) == 0;
}

static const struct backend backend = {.put = put, .get = get, .copy = copy, .same = same};
static struct data data = {.backend = &backend};

static int make_staging(void **state)
{
    (void)state;
    data.staging = malloc(DATA_STAGING_BYTES);
    return data.staging ? 0 : -1;
}

static int free_staging(void **state)
{
    (void)state;
    free(TAKE_PTR(data.staging));
    return 0;
}

/* A byte more than it has would be seen behind it. */
static void check_made(const struct pattern *p, size_t count)
{
    enum { RANK = 3, FIRST = 41 };
    size_t bytes = count * element_size(p->type);
    cleanup_free char *here = malloc(bytes + 1), *there = malloc(bytes + 1);
    here[bytes] = there[bytes] = 77;
    pattern_fill(p, RANK, FIRST, count, here);
    data_fill(&data, p, RANK, FIRST, count, there);
    assert_memory_equal(here, there, bytes + 1);
    pattern_reduced(p, FIRST, count, here);
    data_reduced(&data, p, FIRST, count, there);
    assert_memory_equal(here, there, bytes + 1);
}

static void test_made_as_the_pattern_says(void **state)
{
    static const size_t counts[] = {0, 1, 255, 256, 257, 5000, 100000};
    (void)state;
    for (unsigned type = 0; type < ELEMENTS; type++)
        for (unsigned op = 0; op < REDUCTIONS; op++)
            for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
                const struct pattern p = {(enum element)type, (enum reduction)op, 24, 5};
                check_made(&p, counts[i]);
            }
}

/* So many ranks that the staging memory does not hold a period. */
static void test_made_of_a_long_period(void **state)
{
    const struct pattern p = {ELEMENT_DOUBLE, REDUCE_PROD, 30000, 1};
    size_t fits = DATA_STAGING_BYTES / sizeof(double), count = pattern_period(&p) + fits / 2,
           bytes = count * sizeof(double);
    (void)state;
    assert_true(pattern_period(&p) > fits);
    cleanup_free char *here = malloc(bytes), *there = malloc(bytes);
    pattern_fill(&p, 7, 0, count, here);
    data_fill(&data, &p, 7, 0, count, there);
    assert_memory_equal(here, there, bytes);
}

/* What is made crosses to the device once, however much of it there is. */
static void test_little_is_put(void **state)
{
    const struct pattern p = {ELEMENT_FLOAT, REDUCE_SUM, 8, 1};
    size_t bytes = (size_t)64 << 20;
    cleanup_free char *there = malloc(bytes);
    (void)state;
    puts_made = 0;
    data_fill(&data, &p, 0, 0, bytes / 4, there);
    data_set(&data, 0, bytes, there);
    assert_int_equal(puts_made, 2);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(there[i], 0);
}

static void test_wrong_elements_are_counted(void **state)
{
    static const size_t flips[] = {0,
                                   1,
                                   3,
                                   DATA_STAGING_BYTES / 2 - 1,
                                   DATA_STAGING_BYTES / 2,
                                   DATA_STAGING_BYTES / 2 + 2,
                                   DATA_STAGING_BYTES + 4096 + 1};
    const struct pattern p = {ELEMENT_HALF, REDUCE_SUM, 2, 1};
    size_t count = (DATA_STAGING_BYTES + 4096) / 2 + 1;
    cleanup_free char *got = malloc(count * 2), *want = malloc(count * 2);
    (void)state;
    data_reduced(&data, &p, 0, count, want);
    for (unsigned can = 0; can < 2; can++) {
        tells = can;
        memcpy(got, want, count * 2);
        gets_made = 0;
        assert_int_equal(data_wrong(&data, &p, got, want, count), 0);
        assert_true(tells == (gets_made == 0));
        for (size_t i = 0; i < ARRAY_LEN(flips); i++)
            got[flips[i]] ^= 1;
        assert_int_equal(data_wrong(&data, &p, got, want, count), 6); /* bytes 0 and 1 are one */
    }
    tells = false;
}

static void test_averages_may_be_rounded(void **state)
{
    const struct pattern p = {ELEMENT_FLOAT, REDUCE_AVG, 3, 1};
    float want[] = {1, 2, 3, 0}, got[] = {1, 2.0000002f, 3, 0};
    (void)state;
    tells = true;
    assert_int_equal(data_wrong(&data, &p, got, want, 4), 0);
    got[2] = 3.1f;
    assert_int_equal(data_wrong(&data, &p, got, want, 4), 1);
    tells = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_as_the_pattern_says),
        cmocka_unit_test(test_made_of_a_long_period),
        cmocka_unit_test(test_little_is_put),
        cmocka_unit_test(test_wrong_elements_are_counted),
        cmocka_unit_test(test_averages_may_be_rounded),
    };
    return cmocka_run_group_tests(tests, make_staging, free_staging);
}
