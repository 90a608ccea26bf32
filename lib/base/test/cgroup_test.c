/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cgroup.h"

static void no_such_file(void **state)
{
    (void)state;
    char word[32];
    assert_true(cgroup_open("memory", "no.such.file", "no.such.file") < 0);
    assert_true(cgroup_read_word("no-such-controller", "no.such.file", word, sizeof word) < 0);
}

static void quotas(void **state)
{
    (void)state;
    assert_int_equal(cgroup_parse_quota("max 100000\n"), UINT32_MAX);
    assert_int_equal(cgroup_parse_quota("-1 100000"), UINT32_MAX);
    assert_int_equal(cgroup_parse_quota("200000 100000\n"), 2);
    assert_int_equal(cgroup_parse_quota("150000 100000"), 2);
    assert_int_equal(cgroup_parse_quota("20000 100000"), 1);
    assert_int_equal(cgroup_parse_quota("200000"), UINT32_MAX);
    assert_int_equal(cgroup_parse_quota(""), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_such_file),
        cmocka_unit_test(quotas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
