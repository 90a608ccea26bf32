/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/follow/log_tail.h"

static void put(void *arg, int stream, const char *data, size_t length)
{
    struct buf *out = arg;
    buf_printf(out, "%d:%.*s", stream, (int)length, data);
}

static void assert_kept(size_t limit, int lines, const char *expected)
{
    struct log_tail tail;
    struct buf out = BUF_INIT;
    char line[16];
    assert_int_equal(log_tail_init(&tail, limit), 0);
    for (int i = 0; i < lines; i++) {
        int n = snprintf(line, sizeof line, "%d;", i);
        assert_true(log_tail_add(&tail, 1 + i % 2, line, (size_t)n));
    }
    log_tail_take(&tail, put, &out);
    log_tail_take(&tail, put, &out); /* nothing any more */
    buf_add(&out, "", 1);
    assert_string_equal(out.data, expected);
    buf_done(&out);
    log_tail_done(&tail);
}

static void keeps_the_last_lines(void **state)
{
    (void)state;
    assert_kept(3, 0, "");
    assert_kept(3, 2, "1:0;2:1;");
    assert_kept(3, 3, "1:0;2:1;1:2;");
    assert_kept(3, 8, "2:5;1:6;2:7;");
    assert_kept(1, 5, "1:4;");
    assert_kept(0, 5, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_the_last_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
