/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/prepare/preparer_private.h"

/* A claim has two devices, each with its attach order (NULL: none): whether a pod that still runs
 * can use one of them after both were taken back. */
static void test_what_is_left(void **state)
{
    static const struct {
        const char *first, *second;
        bool admin;          /* the second one */
        bool shared, moving; /* nothing is left, by whether RDMA devices are moved */
    } rows[] = {
        {"{'host': {'name': 'eth1'}}", NULL, true, true, true},
        {"{'host': {'name': 'eth1'}, 'rdma': 'mlx5_0'}", NULL, true, false, true},
        {"{'rdma': 'mlx5_0'}", NULL, true, false, true},
        {"{'host': {'name': 'eth1'}}", "{'rdma': 'mlx5_0'}", false, false, true},
        {"{'host': {'name': 'eth1'}}", NULL, false, false, false}, /* a GPU */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct checkpoint_device devices[2] = {{.device = "a"},
                                               {.device = "b", .admin = rows[i].admin}};
        const struct checkpoint checkpoint = {.devices = devices, .count = 2};
        for (int k = 0; k < 2; k++) {
            char text[128];
            const char *order = k ? rows[i].second : rows[i].first;
            snprintf(text, sizeof text, "%s", order ? order : "");
            for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
            devices[k].order = order ? json_loads(text, 0, NULL) : NULL;
            assert_true(!order || devices[k].order);
        }
        assert_int_equal(reclaim_leaves_nothing(&checkpoint, false), rows[i].shared);
        assert_int_equal(reclaim_leaves_nothing(&checkpoint, true), rows[i].moving);
        json_decref(devices[0].order);
        json_decref(devices[1].order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
