/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/prepare/read_claim.h"

#define GPU "gpu.drarun.dev"
#define NIC "nic.drarun.dev"

static const struct {
    const char *namespace_, *name, *uid, *driver;
    int64_t after_ms;
    bool handed_on;
} cases[] = {
    {"train", "pair", "u-1", NIC, 0, true},      {"train", "pair", "u-1", NIC, 999, true},
    {"train", "pair", "u-1", NIC, 1000, false},  {"train", "pair", "u-1", GPU, 0, false},
    {"train", "pair", "u-2", NIC, 0, false},     {"train", "other", "u-1", NIC, 0, false},
    {"elsewhere", "pair", "u-1", NIC, 0, false},
};

static void to_the_other_driver_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct read_claim read = {0};
        json_t *claim = json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", "train", "name",
                                  "pair", "uid", "u-1");
        assert_null(read_claim_take(&read, "train", "pair", "u-1", NIC, 0));
        read_claim_put(&read, claim, GPU, 5000);
        for (int time = 0; time < 2; time++) {
            json_t *taken = read_claim_take(&read, cases[i].namespace_, cases[i].name, cases[i].uid,
                                            cases[i].driver, 5000 + cases[i].after_ms);
            assert_ptr_equal(taken, cases[i].handed_on && time == 0 ? claim : NULL);
            json_decref(taken);
        }
        read_claim_done(&read);
        assert_int_equal(claim->refcount, 1);
        json_decref(claim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_other_driver_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
