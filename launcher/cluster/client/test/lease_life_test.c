/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/lease_life.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define RENEWED "\"spec\":{\"renewTime\":\"2026-11-21T15:24:42.500000Z\"}"
#define FIELDS(manager, time)                                                                      \
    "\"metadata\":{\"managedFields\":[{\"manager\":\"" manager "\",\"time\":\"" time "\"}]}"
#define HELD(holder, acquired)                                                                     \
    "{\"spec\":{\"holderIdentity\":\"" holder "\",\"acquireTime\":\"2026-11-21T15:" acquired       \
    "Z\",\"renewTime\":\"2026-11-21T15:24:42.500000Z\"}}"
#define RENEWED_MS 1795274682500 /* 2026-11-21T15:24:42.5Z */

static void test_later_of_both_clocks(void **state)
{
    static const struct {
        const char *lease;
        int64_t sign, renewed;
    } cases[] = {
        {"{}", 0, 0},
        {"{\"spec\":{\"renewTime\":7},\"metadata\":[]}", 0, 0},
        {"{" RENEWED "}", RENEWED_MS, RENEWED_MS},
        /* its launcher's clock is slow */
        {"{" RENEWED "," FIELDS("drarun", "2026-11-21T15:30:42Z") "}", RENEWED_MS + 359500,
         RENEWED_MS + 359500},
        /* ... or fast */
        {"{" RENEWED "," FIELDS("drarun", "2026-11-21T15:20:42Z") "}", RENEWED_MS,
         RENEWED_MS - 240500},
        /* somebody else has touched it */
        {"{" RENEWED "," FIELDS("kubectl-edit", "2026-11-21T15:30:42Z") "}", RENEWED_MS,
         RENEWED_MS},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *lease = json_loads(cases[i].lease, 0, NULL);
        assert_non_null(lease);
        assert_int_equal(lease_life_sign(lease), cases[i].sign);
        assert_int_equal(lease_renewed_ms(lease), cases[i].renewed);
    }
}

/* Of 2026-11-21T15:24:42.5Z. */
static void test_time_to_come(void **state)
{
    static const struct {
        const char *lease;
        int64_t last;
    } cases[] = {
        {"{}", 0},
        {"{" RENEWED "}", RENEWED_MS},
        {"{" RENEWED "," FIELDS("kubectl-edit", "2026-11-21T15:20:42Z") "}", RENEWED_MS},
        {"{\"spec\":{\"renewTime\":\"2099-01-01T00:00:00Z\"}," FIELDS("drarun",
                                                                      "2026-11-21T15:24:42Z") "}",
         RENEWED_MS - 500},
        {"{\"spec\":{\"renewTime\":\"2099-01-01T00:00:00Z\"}," FIELDS("kubectl-edit",
                                                                      "2026-11-21T15:24:42Z") "}",
         RENEWED_MS - 500},
        {"{\"spec\":{\"renewTime\":\"2026-11-21T16:24:42.5Z\"}}", RENEWED_MS + 3600000},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *lease = json_loads(cases[i].lease, 0, NULL);
        assert_non_null(lease);
        assert_int_equal(lease_last_write(lease, RENEWED_MS), cases[i].last);
    }
}

/* Whoever looks at it now and then has seen it, and sees it still. */
static void test_held_by_another_one(void **state)
{
    static const struct {
        const char *spec;
        int64_t now_ms; /* after the last renewal */
        bool held;
    } cases[] = {
        {HELD("a", "20:00"), 0, true},
        {HELD("a", "20:00"), 29999, true},
        {HELD("a", "20:00"), 30000, false},
        {HELD("", "20:00"), 0, true}, /* it has given it back */
        /* it took it, and died */
        {HELD("a", "24:30"), 0, false},
        {HELD("a", "24:30"), 7500, true},
        {HELD("a", "24:30"), 7499, false},
        {HELD("a", "30:00"), 0, false}, /* its clock is ahead */
        /* that was us: the answer was lost */
        {HELD("own", "20:00"), 0, false},
        {"{\"spec\":{\"holderIdentity\":\"a\",\"renewTime\":\"2026-11-21T15:24:42.5Z\"}}", 0,
         false},
        {"{}", 0, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *lease = json_loads(cases[i].spec, 0, NULL);
        assert_non_null(lease);
        assert_int_equal(lease_is_held(lease, "own", RENEWED_MS + cases[i].now_ms, 20000, 30000),
                         cases[i].held);
    }
}

static void test_what_loses_it(void **state)
{
    static const struct {
        int code;
        bool timed;
        int64_t left_ms;
        bool lost;
    } cases[] = {
        {ECONNREFUSED, false, 30000, false},
        {ECONNREFUSED, true, 30000, false},
        /* its life is nearly over, or was long ago */
        {ECONNREFUSED, false, 5999, false},
        {ECONNREFUSED, true, 5999, true},
        {ETIMEDOUT, false, -3600000, false},
        {EIO, false, -1, false},
        {EAGAIN, false, -1, false},
        {EACCES, false, -1, false},
        {EIO, true, -1, true},
        /* it was deleted */
        {ENOENT, false, 30000, true},
        {ENOENT, true, 30000, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(lease_is_lost(cases[i].code, cases[i].timed, cases[i].left_ms, 60000),
                         cases[i].lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_later_of_both_clocks), cmocka_unit_test(test_time_to_come),
        cmocka_unit_test(test_held_by_another_one), cmocka_unit_test(test_what_loses_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
