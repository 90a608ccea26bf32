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
#define RENEWED_MS 1795274682500 /* 2026-11-21T15:24:42.5Z */

static void test_later_of_both_clocks(void **state)
{
    static const struct {
        const char *lease;
        int64_t sign;
    } cases[] = {
        {"{}", 0},
        {"{\"spec\":{\"renewTime\":7},\"metadata\":[]}", 0},
        {"{" RENEWED "}", RENEWED_MS},
        /* its launcher's clock is slow */
        {"{" RENEWED "," FIELDS("drarun", "2026-11-21T15:30:42Z") "}", RENEWED_MS + 359500},
        /* ... or fast */
        {"{" RENEWED "," FIELDS("drarun", "2026-11-21T15:20:42Z") "}", RENEWED_MS},
        /* somebody else has touched it */
        {"{" RENEWED "," FIELDS("kubectl-edit", "2026-11-21T15:30:42Z") "}", RENEWED_MS},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *lease = json_loads(cases[i].lease, 0, NULL);
        assert_non_null(lease);
        assert_int_equal(lease_life_sign(lease), cases[i].sign);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_later_of_both_clocks),
                                       cmocka_unit_test(test_what_loses_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
