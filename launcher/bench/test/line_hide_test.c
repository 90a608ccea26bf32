/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/bench/line_hide.h"
#include "lib/base/buf.h"

static void show(void *arg, const char *data, size_t length)
{
    buf_add(arg, data, length);
}

/* However the bytes are cut. */
static void shows(const char *begins, const char *text, const char *wanted)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct buf out = BUF_INIT;
        struct line_hide hide = {.begins = begins, .show = show, .arg = &out};
        for (size_t at = 0; at < strlen(text); at += piece)
            line_hide_add(&hide, text + at, strlen(text) - at < piece ? strlen(text) - at : piece);
        line_hide_end(&hide);
        assert_string_equal(out.data ? out.data : "", wanted);
        buf_done(&out);
    }
}

static void test_lines(void **state)
{
    (void)state;
    shows("#x ", "a\n#x 1\nb\n", "a\nb\n");
    shows("#x ", "#x 1\n#x 2", "");
    shows("#x ", "#x", "#x");
    shows("#x ", "#x\n#x1\n# x \n", "#x\n#x1\n# x \n");
    shows("#x ", "a#x 1\n ##x 2\n\n\n#", "a#x 1\n ##x 2\n\n\n#");
    shows("##", "#\n###\n# #\n", "#\n# #\n");
    shows(NULL, "#x 1\n", "#x 1\n");
}

/* A prompt is not held back. */
static void test_nothing_waits(void **state)
{
    struct buf out = BUF_INIT;
    struct line_hide hide = {.begins = "#x ", .show = show, .arg = &out};
    (void)state;
    line_hide_add(&hide, "ready? ", 7);
    assert_string_equal(out.data, "ready? ");
    line_hide_add(&hide, "yes\n# ", 6);
    assert_string_equal(out.data, "ready? yes\n# ");
    buf_done(&out);
}

/* A text that breaks off in a hidden line hides nothing of the next one. */
static void test_next_text(void **state)
{
    struct buf out = BUF_INIT;
    struct line_hide hide = {.begins = "#x ", .show = show, .arg = &out};
    (void)state;
    line_hide_add(&hide, "#x 1", 4);
    line_hide_end(&hide);
    line_hide_add(&hide, "a\n#x 2\nb", 8);
    line_hide_end(&hide);
    line_hide_add(&hide, "#x 3\nc\n", 7);
    assert_string_equal(out.data, "a\nbc\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nothing_waits),
        cmocka_unit_test(test_next_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
