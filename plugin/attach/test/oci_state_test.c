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
        const char *part; /* of the error */
    } table[] = {
        {"{\"ociVersion\":\"1.2.0\",\"id\":\"x\",\"status\":\"creating\",\"pid\":4422,\"bundle\":"
         "\"/b\","
         "\"annotations\":{\"a\":\"b\"}}",
         4422, NULL},
        {"{\"pid\":2}", 2, NULL},
        {"{\"pid\":4194304,\"status\":null}", 4194304, NULL},
        {"{\"pid\":4194305}", 0, "pid: expected an integer of at most 4194304"},
        {"{\"pid\":1}", 0, "pid: expected an integer of at least 2"},
        {"{\"pid\":2.5}", 0, "pid: expected an integer"},
        {"{\"pid\":null}", 0, "expected \"pid\""},
        {"{\"pid\":5,\"status\":\"stopped\"}", 0, "status: the container has ended"},
        {"{\"pid\":5,\"pid\":6}", 0, "container state:1:"},
        {"5", 0, "expected a mapping"},
        {"", 0, "expected one document, got 0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct drarun_error err = {0};
        pid_t pid = 0;
        int rc = oci_state_pid(table[i].text, strlen(table[i].text), &pid, &err);
        assert_int_equal(pid, table[i].pid);
        assert_int_equal(rc == 0, table[i].pid != 0);
        if (table[i].part && !strstr(err.text, table[i].part))
            fail_msg("%s: %s", table[i].text, err.text);
    }
}

static void reading_ends_at_its_deadline(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    pid_t pid = 0;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "{\"pid\":7}", 9), 9);
    assert_int_equal(oci_state_read(ends[0], clock_ms() + 30, &pid, &err), -ETIMEDOUT);
    assert_int_equal(write(ends[1], "{\"pid\":7}", 9), 9);
    close(ends[1]);
    assert_int_equal(oci_state_read(ends[0], clock_ms() + 1000, &pid, &err), 0);
    assert_int_equal(pid, 7);
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
