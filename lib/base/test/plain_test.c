/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/plain.h"

static void controls_become_question_marks(void **state)
{
    static const struct {
        const char *text, *plain;
    } rows[] = {
        {"", ""},
        {"a\tb\nc", "a\tb\nc"},
        {"\033]0;owned\a\033[31mred", "?]0;owned??[31mred"},
        {"\rover\b\x7f", "?over??"},
        {"\xc2\x9b"
         "31m\xc2\x85\xc2\xa0",
         "??31m??\xc2\xa0"}, /* CSI and NEL, and a space that may stay */
        {"\x9b"
         "31m",
         "?31m"}, /* the same for a terminal of 8 bits */
        {"größe 日本 \xf0\x9f\x98\x80", "größe 日本 \xf0\x9f\x98\x80"},
        {"cut \xe6\x97", "cut ??"},
        {"\xc0\x9b \xed\xa0\x80 \xf5\x80\x80\x80", "?? ??? ????"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", rows[i].text);
        plain_text(text, strlen(text));
        assert_string_equal(text, rows[i].plain);
    }
}

static void copies_end_between_characters(void **state)
{
    static const struct {
        const char *text, *copy;
    } rows[] = {
        {"", ""},
        {"abc", "abc"},
        {"abcd", "abc"},
        {"ab\xc3\xb6", "ab"},
        {"a\xc3\xb6", "a\xc3\xb6"},
        {"\xe6\x97\xa5", "\xe6\x97\xa5"},
        {"\xf0\x9f\x98\x80", ""},
        {"a\x9b"
         "b",
         "a"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char copy[4];
        utf8_copy(copy, sizeof copy, rows[i].text);
        assert_string_equal(copy, rows[i].copy);
    }
}

static void keep(void *arg, const struct log_line *line)
{
    memcpy(arg, line->text, line->length);
}

static void logged_lines_are_plain(void **state)
{
    char line[1100] = "";
    (void)state;
    log_divert(keep, line);
    log_error("the server says \033[2J%s", "\033]0;x\a");
    log_divert(NULL, NULL);
    assert_string_equal(line, "drarun: the server says ?[2J?]0;x?\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_become_question_marks),
        cmocka_unit_test(copies_end_between_characters),
        cmocka_unit_test(logged_lines_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
