/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/lease_life.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_later_of_both_clocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
