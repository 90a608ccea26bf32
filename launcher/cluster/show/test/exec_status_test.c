/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/show/exec_status.h"

static int status_of(const char *text, struct drarun_error *err)
{
    return exec_status_read(text, strlen(text), err);
}

#define FAILED(code)                                                                               \
    "{\"status\": \"Failure\", \"message\": \"command terminated\", \"details\": {\"causes\": "    \
    "[{\"reason\": \"Other\", \"message\": \"9\"}, {\"reason\": \"ExitCode\", \"message\": " code  \
    "}]}}"

static void test_status_of_the_command(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(status_of("{\"metadata\": {}, \"status\": \"Success\"}", &err), 0);
    assert_int_equal(status_of(FAILED("\"1\""), &err), 1);
    assert_int_equal(status_of(FAILED("\"137\""), &err), 137);
    assert_int_equal(status_of(FAILED("\"255\""), &err), 255);
    assert_string_equal(err.text, "");
}

/* A command that failed never counts as one that succeeded. */
static void test_failure_without_a_status(void **state)
{
    static const char *const codes[] = {
        FAILED("\"0\""), FAILED("\"256\""), FAILED("\"many\""),       FAILED("\"1 or 2\""),
        FAILED("\"\""),  FAILED("\"-1\""),  FAILED("\"4294967296\""), FAILED("3")};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct drarun_error err = {0};
        assert_int_equal(status_of(codes[i], &err), -EIO);
        assert_string_equal(err.text, "command terminated");
        assert_int_equal(err.kind, DRARUN_ERR_CLUSTER);
    }
}

static void test_no_report(void **state)
{
    static const char *const texts[] = {"",
                                        "no JSON",
                                        "[]",
                                        "{}",
                                        "{\"status\": \"Failure\"}",
                                        "{\"status\": 1, \"details\": {\"causes\": 2}}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct drarun_error err = {0};
        assert_int_equal(status_of(texts[i], &err), -EIO);
        assert_string_equal(err.text, "the kubelet does not say how the command ended");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_of_the_command),
        cmocka_unit_test(test_failure_without_a_status),
        cmocka_unit_test(test_no_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
