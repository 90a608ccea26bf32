/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/plain.h"

#define SIZE sizeof((struct drarun_error *)0)->text

static bool is_utf8(const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n)
        if ((n = utf8_length((const unsigned char *)text, left)) == 0)
            return false;
    return true;
}

/* A webhook's message may be long, and in any language: wherever the end falls in a character. */
static void test_cut(void **state)
{
    char words[2 * SIZE];
    (void)state;
    for (size_t offset = 0; offset < 8; offset++) {
        struct drarun_error err = {0};
        memset(words, 'a', offset);
        for (size_t i = offset; i + 7 < sizeof words; i += 7)
            memcpy(words + i, "\xe6\x97\xa5\xf0\x9f\x98\x80", 8);
        assert_int_equal(error_kind(&err, DRARUN_ERR_CLUSTER, EINVAL, "400: %s", words), -EINVAL);
        assert_true(is_utf8(err.text) && !strchr(err.text, '?'));
        assert_true(strlen(err.text) > SIZE - 5);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(error_prefix(&err, "%.*s", (int)i, "abcde"), -EINVAL);
            assert_true(is_utf8(err.text) && !strchr(err.text, '?'));
            assert_true(strlen(err.text) > SIZE - 5);
        }
    }
}

static void test_words_of_others(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    error_set(&err, ENOENT, "no file %s", "caf\xe9");
    assert_string_equal(err.text, "no file caf?");
    error_set(&err, ENOENT, "%.4s\n%s",
              "gr\xc3\xb6\xc3\x9f"
              "e",
              "\033[31m");
    assert_string_equal(err.text, "gr\xc3\xb6\n?[31m");
    error_set(&err, ENOENT, "%.3s", "gr\xc3\xb6");
    assert_string_equal(err.text, "gr?");
    error_prefix(&err, "größe");
    assert_string_equal(err.text, "größe: gr?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_words_of_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
