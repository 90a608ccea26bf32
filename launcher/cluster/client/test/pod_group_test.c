/* SPDX-License-Identifier: Apache-2.0 */
/* When a PodGroup is read. What is read of it, tests/test_cluster_gang.py tries on a cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/client/pod_group.h"

#define NOW_MS INT64_C(1700000100000)

static void only_when_wanted(void **state)
{
    struct pod_group group = {0};
    (void)state;
    assert_true(pod_group_due(&group) == INT64_MAX);
    pod_group_want(&group, "a-w");
    assert_true(pod_group_due(&group) <= NOW_MS);
    assert_null(pod_group_told(&group));
    pod_group_want(&group, NULL);
    assert_true(pod_group_due(&group) == INT64_MAX);
    pod_group_done(&group);
}

/* A worker that changes does not put it off, be it ever so often. */
static void soon_after_a_change(void **state)
{
    struct pod_group group = {.due_ms = NOW_MS + 10000};
    (void)state;
    group.wanted = strdup("a-w");
    pod_group_stir(&group, NOW_MS);
    assert_true(pod_group_due(&group) == NOW_MS + 1000);
    pod_group_stir(&group, NOW_MS + 900);
    assert_true(pod_group_due(&group) == NOW_MS + 1000);
    pod_group_done(&group);
}

static void what_is_told_is_of_the_wanted_one(void **state)
{
    struct pod_group group = {.due_ms = NOW_MS + 10000};
    (void)state;
    group.name = strdup("a-w");
    group.told.name = group.name;
    pod_group_want(&group, "a-w");
    assert_non_null(pod_group_told(&group));
    assert_true(pod_group_due(&group) == NOW_MS + 10000);
    pod_group_want(&group, "users");
    assert_null(pod_group_told(&group));
    assert_true(pod_group_due(&group) == 0);
    pod_group_done(&group);
    assert_null(group.name);
    assert_null(group.wanted);
}

static void never_where_the_cluster_has_none(void **state)
{
    struct pod_group group = {0};
    struct cluster cluster = {.pod_groups = NULL};
    (void)state;
    pod_group_want(&group, "a-w");
    pod_group_look(&group, &cluster, "train");
    assert_true(group.refused);
    assert_true(pod_group_due(&group) == INT64_MAX);
    pod_group_done(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_when_wanted),
        cmocka_unit_test(soon_after_a_change),
        cmocka_unit_test(what_is_told_is_of_the_wanted_one),
        cmocka_unit_test(never_where_the_cluster_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
