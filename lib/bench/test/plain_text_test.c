/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken off a kept output, at every length of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/plain_text.h"

static void becomes(const char *text, size_t length, const char *expected, size_t expected_length)
{
    struct plain_text plain;
    assert_true(plain_text_of(text, length, &plain));
    if (plain.length != expected_length || memcmp(plain.data, expected, expected_length) != 0)
        fail_msg("\"%.*s\" became \"%.*s\"", (int)length, text, (int)plain.length, plain.data);
    plain_text_done(&plain);
}

#define BECOMES(text, expected) becomes(text, sizeof(text) - 1, expected, sizeof(expected) - 1)

static void test_colours(void **state)
{
    (void)state;
    BECOMES("\033[1;36mred\033[0m [0] x\n", "red [0] x\n");
    BECOMES("[36mred[0m [0] [12", "red [0] [12");
    BECOMES("\033]0;title\007a\033(Bb\033Mc", "abc");
    BECOMES("a\033", "a");
    BECOMES("a\033[", "a");
    BECOMES("a\033[12", "a");
    BECOMES("\033]0;no end\nb", "\nb");
    BECOMES("[m[]m [3;4] 10[1]", "[m[]m [3;4] 10[1]");
}

static void test_utf16(void **state)
{
    (void)state;
    BECOMES("\xff\xfe"
            "a\0\xe9\0\xac\x20\n\0",
            "a\xc3\xa9\xe2\x82\xac\n");
    BECOMES("\xfe\xff\0a\xd8\x3d\xde\x00", "a\xf0\x9f\x98\x80"); /* a pair of surrogates */
    BECOMES("\xff\xfe"
            "a\0\x3d\xd8",
            "a\xef\xbf\xbd"); /* its second half is cut off */
    BECOMES("\xff\xfe"
            "\x3d\xd8z\0q",
            "\xef\xbf\xbdz"); /* it has none; half a unit at the end */
    BECOMES("a\0b\0c\0", "abc");
    BECOMES("\xff\xfe", "");
    BECOMES("a\0", "a\0");
}

static void test_docker(void **state)
{
    (void)state;
    BECOMES("{\"log\":\"a b\\n\",\"stream\":\"stdout\"}\n{\"log\":\"c\",\"stream\":\"stdout\"}\n"
            "{\"log\":\"x\\n\",\"stream\":\"stderr\"}\n{\"log\":\"d\\n\",\"stream\":\"stdout\"}\n"
            "other\n{\"log\":\"end\",\"stream\":\"stdout\"}\n{\"log\":\"cut",
            "a b\nx\ncd\nother\nend");
    BECOMES("{\"results\": []}\n", "{\"results\": []}\n");
    BECOMES("{\"log\": 5, \"stream\": \"stdout\"}\n", "{\"log\": 5, \"stream\": \"stdout\"}\n");
    BECOMES("{\"log\":\"a\\n\",\"stream\":\"stdout\"}\n{\"log\":\"\xff lost?\"}\n",
            "a\n{\"log\":\"\xff lost?\"}\n"); /* what cannot be read is not lost */
}

static void test_plain_text_is_not_copied(void **state)
{
    static const char text[] = "# nThread 1 [0000:8f:00] [0]\n\0\xff";
    struct plain_text plain;
    (void)state;
    assert_true(plain_text_of(text, sizeof text - 1, &plain));
    assert_ptr_equal(plain.data, text);
    assert_null(plain.own.data);
    plain_text_done(&plain);
    BECOMES("", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_colours), cmocka_unit_test(test_utf16),
                                       cmocka_unit_test(test_docker),
                                       cmocka_unit_test(test_plain_text_is_not_copied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
