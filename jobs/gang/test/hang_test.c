/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jobs/gang/hang.h"

#define RANKS 4u

/* The time in which a hang is found with one look every half second; 0: not within a minute. Every
 * rank is at its step from the second look on, and runs by itself where alone says so. */
static int64_t found(const uint64_t steps[RANKS], uint32_t stopped, uint32_t alone,
                     enum hang_kind *ret_kind, uint32_t ret_ranks[RANKS], uint32_t *ret_count)
{
    struct hang *hang = hang_new(RANKS, 4000);
    int64_t at = 0;
    *ret_kind = HANG_NONE;
    for (int64_t now = 1; now < 60000 && *ret_kind == HANG_NONE; now += 500) {
        for (uint32_t i = 0; i < RANKS; i++) {
            const struct hang_look look = {.step = steps[i],
                                           .stopped = stopped >> i & 1,
                                           .alone = alone >> i & 1,
                                           .cpu_us = (uint64_t)now * 1000};
            hang_see(hang, i, &look, now);
        }
        *ret_kind = hang_judge(hang, now, ret_ranks, ret_count);
        at = now;
    }
    hang_free(hang);
    return *ret_kind == HANG_NONE ? 0 : at;
}

static void names_who_is_stopped(void **state)
{
    (void)state;
    enum hang_kind kind;
    uint32_t ranks[RANKS], count;
    int64_t at = found((const uint64_t[]){7, 7, 7, 7}, 1u << 2, 0, &kind, ranks, &count);
    assert_int_equal(kind, HANG_STOPPED);
    assert_in_range(at, 2000, 2999);
    assert_int_equal(count, 1);
    assert_int_equal(ranks[0], 2);
}

/* That is the user's terminal. */
static void is_silent_when_all_are_stopped(void **state)
{
    (void)state;
    enum hang_kind kind;
    uint32_t ranks[RANKS], count;
    assert_int_equal(found((const uint64_t[]){7, 7, 7, 7}, 0xf, 0, &kind, ranks, &count), 0);
}

static void names_who_never_came(void **state)
{
    (void)state;
    enum hang_kind kind;
    uint32_t ranks[RANKS], count;
    int64_t at = found((const uint64_t[]){1, 0, 1, 0}, 0, 0, &kind, ranks, &count);
    assert_int_equal(kind, HANG_BEHIND);
    assert_in_range(at, 4000, 4999);
    assert_int_equal(count, 2);
    assert_int_equal(ranks[0], 1);
    assert_int_equal(ranks[1], 3);
}

/* Together in one call, or at work: nobody is missing. */
static void waits_for_who_works(void **state)
{
    (void)state;
    enum hang_kind kind;
    uint32_t ranks[RANKS], count;
    assert_int_equal(found((const uint64_t[]){7, 7, 7, 7}, 0, 0, &kind, ranks, &count), 0);
    assert_int_equal(found((const uint64_t[]){9, 9, 8, 9}, 0, 1u << 2, &kind, ranks, &count), 0);
    assert_int_equal(found((const uint64_t[]){0, 0, 0, 0}, 0, 0, &kind, ranks, &count), 0);
}

/* Calls of 2 s each: one that takes 8 s is no hang, one of 11 s is. */
static void waits_longer_where_steps_take_long(void **state)
{
    (void)state;
    struct hang *hang = hang_new(2, 4000);
    uint32_t ranks[2], count;
    int64_t now = 1;
    for (uint64_t step = 5; step < 8; step++, now += 2000)
        for (uint32_t i = 0; i < 2; i++)
            hang_see(hang, i, &(struct hang_look){.step = step + i}, now);
    now += 6000;
    assert_int_equal(hang_judge(hang, now, ranks, &count), HANG_NONE);
    now += 3000;
    assert_int_equal(hang_judge(hang, now, ranks, &count), HANG_BEHIND);
    assert_int_equal(ranks[0], 0);
    assert_in_range(hang_lasts_ms(hang, 0, now), 10000, 12000);
    hang_skip(hang, 8000, now);
    assert_int_equal(hang_judge(hang, now, ranks, &count), HANG_NONE);
    hang_free(hang);
}

/* Looks every 500 ms that all come 3 s late: what hangs for 4 s is seen at the eighth. */
static void late_looks_do_not_hide_a_hang(void **state)
{
    (void)state;
    struct hang *hang = hang_new(2, 4000);
    uint32_t ranks[2], count, looks = 0;
    int64_t now = 1;
    for (uint32_t i = 0; i < 2; i++)
        hang_see(hang, i, &(struct hang_look){.step = i}, now);
    do {
        now += 3500;
        hang_skip(hang, 3000, now);
        looks++;
    } while (hang_judge(hang, now, ranks, &count) == HANG_NONE && looks < 100);
    assert_int_equal(looks, 8);
    assert_int_equal(ranks[0], 0);
    hang_skip(hang, 60000, now); /* nobody has moved later than now */
    assert_int_equal(hang_lasts_ms(hang, 0, now), 0);
    hang_free(hang);
}

static void nobody_waits_for_the_ended(void **state)
{
    (void)state;
    struct hang *hang = hang_new(2, 4000);
    uint32_t ranks[2], count;
    hang_see(hang, 0, &(struct hang_look){.step = 9}, 1);
    hang_see(hang, 1, &(struct hang_look){.step = 8}, 1);
    hang_see(hang, 1, NULL, 2);
    hang_see(hang, 7, NULL, 2); /* no such rank */
    assert_int_equal(hang_judge(hang, 60000, ranks, &count), HANG_NONE);
    hang_free(hang);
    hang_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_who_is_stopped),
        cmocka_unit_test(is_silent_when_all_are_stopped),
        cmocka_unit_test(names_who_never_came),
        cmocka_unit_test(waits_for_who_works),
        cmocka_unit_test(waits_longer_where_steps_take_long),
        cmocka_unit_test(late_looks_do_not_hide_a_hang),
        cmocka_unit_test(nobody_waits_for_the_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
