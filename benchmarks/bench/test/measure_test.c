/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <time.h>

#include "benchmarks/bench/measure.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/test/skip.h"

/* A backend of one rank whose all_reduce takes a known time, by the same clock, and may lie. */
static double delay;
static size_t flipped = SIZE_MAX;
static unsigned calls, barriers;
static double wrong_of_rank;                    /* of the last measurement */
static unsigned char first_sent, last_received; /* what the first call found */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int slow_all_reduce(const struct transfer *t, struct drarun_error *err)
{
    double end = now() + delay;
    size_t bytes = t->count * element_size(t->type);
    (void)err;
    if (calls++ == 0 && bytes > 0) {
        first_sent = *(const unsigned char *)t->send;
        last_received = ((unsigned char *)t->recv)[bytes - 1];
    }
    if (t->send != t->recv)
        memcpy(t->recv, t->send, bytes);
    if (flipped < bytes)
        ((unsigned char *)t->recv)[flipped] ^= 1;
    while (now() < end)
        ;
    return 0;
}

static int nothing(struct drarun_error *err)
{
    (void)err;
    return 0;
}

static int count_barrier(struct drarun_error *err)
{
    (void)err;
    barriers++;
    return 0;
}

static int alone(double *values, size_t count, enum backend_agree how, struct drarun_error *err)
{
    (void)values, (void)count, (void)how, (void)err;
    return 0;
}

static int share(const void *mine, void *all, size_t bytes, struct drarun_error *err)
{
    (void)err;
    memcpy(all, mine, bytes);
    return 0;
}

static void copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static const struct backend backend = {
    .version = BACKEND_VERSION,
    .name = "stand-in",
    .alloc = malloc,
    .release = free,
    .put = copy,
    .get = copy,
    .copy = copy,
    .all_reduce = slow_all_reduce,
    .finish = nothing,
    .barrier = count_barrier,
    .agree = alone,
    .share = share,
};
static const struct backend_world world = {.rank = 0, .ranks = 1};
static const struct measure_case one = {
    &backend, &world, &collective_all_reduce, ELEMENT_FLOAT, REDUCE_SUM, 0, 4096};

static struct measured run(const struct measure_plan *plan, bool in_place)
{
    struct measure_memory memory;
    struct measured result;
    struct drarun_error err = {0};
    assert_int_equal(measure_memory_new(&one, 0, plan->check > 0, &memory, &err), 0);
    assert_int_equal(measure(&one, plan, &memory, 0, in_place, &result, &err), 0);
    measure_memory_done(&backend, &memory);
    assert_true(result.ranks[0] == result.seconds);
    wrong_of_rank = result.wrong_ranks[0];
    free(TAKE_PTR(result.ranks));
    free(TAKE_PTR(result.wrong_ranks));
    return result;
}

/* At most 1 us or 0.1 % beside the truth, in one of some measurements: others use this machine too.
 */
static void test_known_delays(void **state)
{
    static const double delays[] = {10e-6, 100e-6, 1e-3, 5e-3};
    const char *machine = getenv("DRARUN_TEST_MACHINE"); /* scripts/lib/machine_factor.py */
    (void)state;
    if (machine && strcmp(machine, "1") != 0)
        skip_for("the machine is slower than usual now, by a factor of about %s: times say nothing",
                 machine);
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        const struct measure_plan plan = {
            .iters = delays[i] < 1e-3 ? 10 : 1, .agg = 1, .average = AVERAGE_MEAN};
        double least = 1, most = delays[i] + (delays[i] > 1e-3 ? delays[i] / 1000 : 1e-6);
        delay = delays[i];
        for (unsigned k = 0; k < 500 && least > most; k++) {
            double seconds = run(&plan, false).seconds;
            assert_true(seconds >= delays[i]);
            least = seconds < least ? seconds : least;
        }
        assert_true(least <= most);
    }
    delay = 0;
}

static void test_calls_are_counted(void **state)
{
    const struct measure_plan plan = {.iters = 7, .agg = 3, .blocking = 3, .check = 2};
    (void)state;
    calls = barriers = 0;
    struct measured m = run(&plan, false);
    assert_int_equal(calls, 1 + 7 * 3 + 2); /* one before, the timed ones, the checked ones */
    assert_int_equal(barriers, 1 + 7);
    assert_true(m.wrong == 0);
}

/* Pages that nobody wrote would be read from the cache, so that large messages were too fast. */
static void test_memory_was_written_before(void **state)
{
    const struct measure_plan plan = {.iters = 1, .agg = 1};
    (void)state;
    calls = first_sent = last_received = 0;
    struct measured m = run(&plan, false);
    assert_true(first_sent != 0 && last_received != 0);
    measured_done(&m);
}

static void test_each_call(void **state)
{
    const struct measure_plan plan = {.iters = 5, .agg = 2, .each = true};
    (void)state;
    delay = 50e-6;
    struct measured m = run(&plan, true);
    for (unsigned i = 0; i < 5; i++)
        assert_true(m.each[i] >= delay);
    measured_done(&m);
    delay = 0;
}

static void test_wrong_data(void **state)
{
    const struct measure_plan plan = {.iters = 1, .agg = 1, .check = 1};
    (void)state;
    for (flipped = 0; flipped < 4096; flipped += 517) {
        assert_true(run(&plan, false).wrong == 1);
        struct measured m = run(&plan, true);
        assert_true(m.wrong == 1 && wrong_of_rank == 1);
    }
    flipped = SIZE_MAX;
    assert_true(run(&plan, false).wrong == 0);
}

static void test_bandwidth(void **state)
{
    const struct measure_plan plan = {.iters = 1, .agg = 1};
    struct measured m = run(&plan, false);
    (void)state;
    assert_true(m.wrong < 0);  /* not checked */
    assert_true(m.busbw == 0); /* of one rank: nothing is sent */
    assert_true(m.algbw > 0 && m.algbw * 1e9 * m.seconds > 4095 &&
                m.algbw * 1e9 * m.seconds < 4097);
}

static void test_settled(void **state)
{
    const struct measure_plan plan = {.iters = 3, .agg = 1, .settle = 5};
    (void)state;
    delay = 0;
    calls = 0;
    run(&plan, false);
    assert_int_equal(calls, 1 + 5 + 3);
}

/* As the timed ones: with a barrier after each, if those have one. */
static void test_settled_with_barriers(void **state)
{
    const struct measure_plan plan = {.iters = 3, .agg = 1, .settle = 5, .blocking = 3};
    (void)state;
    delay = 0;
    calls = barriers = 0;
    run(&plan, false);
    assert_int_equal(calls, 1 + 5 + 3);
    assert_int_equal(barriers, 5 + 1 + 3);
}

/* With an argument: what asserts times, which runs alone (the label timed). */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest timed[] = {
        cmocka_unit_test(test_known_delays),
    };
    if (argc > 1)
        return cmocka_run_group_tests(timed, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settled),           cmocka_unit_test(test_settled_with_barriers),
        cmocka_unit_test(test_calls_are_counted), cmocka_unit_test(test_memory_was_written_before),
        cmocka_unit_test(test_each_call),         cmocka_unit_test(test_wrong_data),
        cmocka_unit_test(test_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
