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

struct logged {
    char text[1100];
    size_t length;
};

static void note_line(void *arg, const struct log_line *line)
{
    struct logged *logged = arg;
    assert_true(line->length < sizeof logged->text);
    memcpy(logged->text, line->text, line->length);
    logged->text[line->length] = '\0';
    logged->length = line->length;
}

/* A message of another's has no line that begins as ours do. */
static void further_lines_are_indented(void **state)
{
    struct logged logged = {0};
    char lines[1100], long_text[1100];
    (void)state;
    for (size_t i = 0; i < sizeof lines - 1; i++)
        lines[i] = i % 2 ? 'a' : '\n';
    lines[sizeof lines - 1] = '\0';
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    memcpy(long_text + 900, "\n\xc3\xb6\ny", 5);
    log_divert(note_line, &logged);
    log_setup("drarun", LOG_NORMAL);
    log_error("webhook: %s", "x\ndrarun: job a has succeeded\ny");
    assert_string_equal(logged.text, "drarun: webhook: x\n  drarun: job a has succeeded\n  y\n");
    log_error("%s", "x\n  of ours:\n    y\n\nz");
    assert_string_equal(logged.text, "drarun: x\n  of ours:\n    y\n\n  z\n");
    log_error("%s", "x\n");
    assert_string_equal(logged.text, "drarun: x\n\n");
    log_error("%s", lines);
    for (size_t i = 0; i + 1 < logged.length; i++)
        if (logged.text[i] == '\n' && i + 2 < logged.length)
            assert_int_equal(logged.text[i + 1], ' ');
    log_error("%s", long_text);
    assert_int_equal(logged.length, 1023);
    assert_int_equal(logged.text[logged.length - 1], '\n');
    log_divert(NULL, NULL);
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

static void cuts_are_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac";
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6};
    (void)state;
    for (size_t most = 0; most < ARRAY_LEN(expected); most++)
        assert_int_equal(utf8_cut(text, sizeof text - 1, most), expected[most]);
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
        cmocka_unit_test(further_lines_are_indented),
        cmocka_unit_test(copies_end_between_characters),
        cmocka_unit_test(cuts_are_between_characters),
        cmocka_unit_test(logged_lines_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
