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

static void entries(void **unused)
{
    json_t *list = json_pack("[i, {s:i}, {s:s}, {s:s, s:i}, {s:s}]", 1, "name", 1, "name", "a",
                             "name", "b", "n", 1, "name", "b");
    (void)unused;
    assert_ptr_equal(value_find(list, "name", "b"), json_array_get(list, 3));
    assert_null(value_find(list, "name", "c"));
    assert_null(value_find(list, "other", "b"));
    assert_null(value_find(list, "name", NULL));
    assert_null(value_find(NULL, "name", "b"));
    json_decref(list);
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

static void of_words(void **unused)
{
    json_t *cut = value_of_words("a\xe2\x82"), *word = value_of_words("\x1b[1m\xe2\x82\xac\t");
    (void)unused;
    assert_string_equal(json_string_value(cut), "a??");
    assert_string_equal(json_string_value(word), "?[1m\xe2\x82\xac\t");
    json_decref(cut);
    json_decref(word);
}

static void kept_members(void **unused)
{
    static const char *const keys[] = {"a", "none", "c", NULL};
    json_t *object = json_pack("{s:{s:i, s:i, s:i}, s:[i, i, i], s:s}", "map", "a", 1, "b", 2, "c",
                               3, "list", 1, 2, 3, "text", "x");
    json_t *other = json_pack("{s:i, s:i}", "b", 1, "c", 2);
    json_t *wanted = json_pack("{s:{s:i, s:i}, s:[i, i], s:s}", "map", "a", 1, "c", 3, "list", 1, 2,
                               "text", "x");
    (void)unused;
    value_keep_at(object, "map", keys);
    value_keep_at(object, "text", keys);
    value_keep_at(object, "none", keys);
    value_cut_at(object, "list", 2);
    value_cut_at(object, "text", 0);
    value_cut_at(object, "none", 0);
    assert_true(json_equal(object, wanted));
    value_keep(other, keys);
    assert_int_equal(json_object_size(other), 1);
    assert_non_null(json_object_get(other, "c"));
    json_decref(object);
    json_decref(other);
    json_decref(wanted);
}

static void counted_values(void **unused)
{
    json_t *value = json_pack("{s:[i, i, {}], s:s}", "list", 1, 2, "text", "x");
    (void)unused;
    assert_int_equal(value_count(value, 100), 6);
    for (size_t max = 1; max <= 6; max++)
        assert_int_equal(value_count(value, max), max);
    assert_int_equal(value_count(NULL, 100), 1);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),        cmocka_unit_test(entries),
        cmocka_unit_test(of_text),      cmocka_unit_test(of_words),
        cmocka_unit_test(kept_members), cmocka_unit_test(counted_values),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
