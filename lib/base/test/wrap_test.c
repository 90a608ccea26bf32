/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/wrap.h"

static char *wrapped(const char *text, size_t at, size_t indent, struct buf *out)
{
    wrap_add(text, at, indent, out);
    buf_add(out, "", 1);
    assert_false(out->failed);
    return out->data;
}

static void keeps_within_the_columns(void **state)
{
    struct buf out = BUF_INIT, text = BUF_INIT;
    (void)state;
    for (int i = 0; i < 40; i++)
        buf_add_str(&text, i % 3 ? "word " : "w\xc3\xb6rd\n");
    cleanup_free char *words_of_four = buf_take(&text);
    assert_non_null(words_of_four);
    char *line = wrapped(words_of_four, 30, 30, &out);
    size_t lines = 0, words = 0;
    for (char *rest = line; (line = strsep(&rest, "\n")) && *line; lines++) {
        size_t columns = lines ? 0 : 30;
        for (const char *p = line; *p; p++) {
            columns += ((unsigned char)*p & 0xc0) != 0x80;
            words += *p == 'w';
        }
        assert_in_range(columns, 31, WRAP_COLUMNS);
        if (lines)
            assert_int_equal(strspn(line, " "), 30);
    }
    assert_int_equal(words, 40);
    assert_int_equal(lines, 4); /* ten words of four letters and a blank fill 50 columns */
    buf_done(&out);
}

static void gives_a_long_word_a_line(void **state)
{
    struct buf out = BUF_INIT;
    char text[200];
    (void)state;
    memset(text, 'x', 100);
    memcpy(text, "a ", 2);
    memcpy(text + 100, " b", 3);
    char *lines = wrapped(text, 0, 2, &out);
    assert_memory_equal(lines, "a\n  xxx", 7);
    assert_string_equal(lines + strlen(lines) - 5, "\n  b\n");
    buf_done(&out);
    assert_string_equal(wrapped("", 0, 2, &out), "\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_within_the_columns),
        cmocka_unit_test(gives_a_long_word_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
