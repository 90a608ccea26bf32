/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

static void assert_text(const struct buf *b, const char *expected)
{
    assert_int_equal(b->len, strlen(expected));
    assert_memory_equal(b->data, expected, b->len + 1);
    assert_true(b->cap > b->len);
    assert_false(b->failed);
}

static void ends_in_nul_at_each_length(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    char expected[301] = "";
    for (size_t i = 0; i < 300; i++) {
        expected[i] = (char)('a' + i % 26);
        if (i % 2)
            buf_add(&b, &expected[i], 1);
        else
            buf_printf(&b, "%c", expected[i]);
        expected[i + 1] = '\0';
        assert_text(&b, expected);
    }
    buf_done(&b);
    assert_null(b.data);
    assert_int_equal(b.len + b.cap, 0);
}

static void added_consumed_and_taken(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_add(&b, NULL, 0);
    assert_text(&b, "");
    buf_add_str(&b, "abc");
    buf_printf(&b, "%d-%s", 12, "x");
    assert_text(&b, "abc12-x");
    buf_consume(&b, 0);
    assert_text(&b, "abc12-x");
    buf_consume(&b, 4);
    assert_text(&b, "2-x");
    buf_consume(&b, 3);
    assert_text(&b, "");
    buf_add_str(&b, "new");
    size_t cap = b.cap;
    buf_reset(&b);
    assert_text(&b, "");
    assert_int_equal(b.cap, cap);
    buf_add_str(&b, "taken");
    char *text = buf_take(&b);
    assert_string_equal(text, "taken");
    assert_null(b.data);
    free(text);
    text = buf_take(&b); /* of an empty one */
    assert_string_equal(text, "");
    free(text);
    buf_consume(&b, 0); /* nothing to drop */
}

static void a_failure_is_kept_until_reset(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_add_str(&b, "abc");
    assert_false(buf_reserve(&b, SIZE_MAX / 2));
    assert_true(b.failed);
    buf_add_str(&b, "d");
    buf_printf(&b, "e");
    assert_string_equal(b.data, "abc");
    assert_false(buf_reserve(&b, 0));
    assert_null(buf_take(&b));
    buf_reset(&b);
    assert_true(buf_reserve(&b, 1000));
    assert_true(b.cap > 1000);
    assert_text(&b, "");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_in_nul_at_each_length),
        cmocka_unit_test(added_consumed_and_taken),
        cmocka_unit_test(a_failure_is_kept_until_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
