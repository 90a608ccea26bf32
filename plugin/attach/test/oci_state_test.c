/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "plugin/attach/oci_state.h"

static void states(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pid_t pid;        /* 0: refused */
        const char *part; /* of the error, or the bundle */
    } table[] = {
        {"{\"ociVersion\":\"1.2.0\",\"id\":\"x\",\"status\":\"creating\",\"pid\":4422,\"bundle\":"
         "\"/b\","
         "\"annotations\":{\"a\":\"b\"}}",
         4422, "/b"},
        {"{\"pid\":2}", 2, ""},
        {"{\"pid\":4194304,\"status\":null}", 4194304, ""},
        {"{\"pid\":4194305}", 0, "pid: expected an integer of at most 4194304"},
        {"{\"pid\":1}", 0, "pid: expected an integer of at least 2"},
        {"{\"pid\":2.5}", 0, "pid: expected an integer"},
        {"{\"pid\":null}", 0, "expected \"pid\""},
        {"{\"pid\":5,\"status\":\"stopped\"}", 0, "status: the container has ended"},
        {"{\"pid\":5,\"pid\":6}", 0, "container state:1:"},
        {"{\"pid\":5,\"bundle\":\"b\"}", 0, "bundle: expected an absolute path"},
        {"5", 0, "expected a mapping"},
        {"", 0, "expected one document, got 0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct drarun_error err = {0};
        struct oci_state got = {0};
        int rc = oci_state_parse(table[i].text, strlen(table[i].text), &got, &err);
        assert_int_equal(got.pid, table[i].pid);
        assert_int_equal(rc == 0, table[i].pid != 0);
        if (rc == 0)
            assert_string_equal(got.bundle, table[i].part);
        else if (!strstr(err.text, table[i].part))
            fail_msg("%s: %s", table[i].text, err.text);
    }
}

static void reading_ends_at_its_deadline(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    struct oci_state got = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "{\"pid\":7}", 9), 9);
    assert_int_equal(oci_state_read(ends[0], clock_ms() + 30, &got, &err), -ETIMEDOUT);
    assert_int_equal(write(ends[1], "{\"pid\":7}", 9), 9);
    close(ends[1]);
    assert_int_equal(oci_state_read(ends[0], clock_ms() + 1000, &got, &err), 0);
    assert_int_equal(got.pid, 7);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),
        cmocka_unit_test(reading_ends_at_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
