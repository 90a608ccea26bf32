/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/doc/value.h"

static void texts(void **unused)
{
    json_t *object = json_pack("{s:s, s:s, s:i, s:n}", "a", "x", "empty", "", "n", 1, "null");
    (void)unused;
    assert_string_equal(value_text(object, "a"), "x");
    assert_string_equal(value_text(object, "empty"), "");
    assert_null(value_text(object, "n"));
    assert_null(value_text(object, "null"));
    assert_null(value_text(object, "none"));
    assert_null(value_text(NULL, "a"));
    assert_string_equal(value_text_or(object, "a", "y"), "x");
    assert_string_equal(value_text_or(object, "empty", "y"), "y");
    assert_string_equal(value_text_or(object, "n", "y"), "y");
    assert_string_equal(value_text_or(NULL, "a", ""), "");
    assert_null(value_text_or(object, "none", NULL));
    json_decref(object);
}

static void of_text(void **unused)
{
    json_t *text = value_of_text("x"), *empty = value_of_text(""), *none = value_of_text(NULL);
    (void)unused;
    assert_string_equal(json_string_value(text), "x");
    assert_true(json_is_null(empty));
    assert_true(json_is_null(none));
    json_decref(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(of_text)};
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
