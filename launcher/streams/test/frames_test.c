/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/streams/frames.h"
#include "lib/base/cleanup.h"

static void on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    buf_printf(arg, "<%u%s|%.*s>", rank, is_stderr ? "e" : "", (int)length, data);
}

static void on_own(void *arg, const char *line, size_t length)
{
    buf_printf(arg, "(%.*s)", (int)length, line);
}

static bool on_stamp(void *arg, const char *text, size_t length)
{
    bool seen = memmem(text, length, ":42.2", 5) != NULL;
    if (!seen)
        buf_printf(arg, "%.*s", (int)length - 17, text + 17);
    return !seen;
}

/* The log in pieces of so many bytes, and what was made of it. */
static void check(const char *log, const char *expected, bool stamped)
{
    size_t length = strlen(log);
    for (size_t step = 1; step <= length; step++) {
        struct buf seen = BUF_INIT;
        struct frames frames;
        const struct frames_owner owner = {
            .output = on_output, .own = on_own, .stamp = stamped ? on_stamp : NULL, .arg = &seen};
        frames_init(&frames, &owner);
        for (size_t at = 0; at < length; at += step)
            frames_add(&frames, log + at, length - at < step ? length - at : step);
        frames_end(&frames);
        assert_string_equal(seen.data ? seen.data : "", expected);
        frames_done(&frames);
        buf_done(&seen);
    }
}

static void lines_come_apart(void **state)
{
    static const struct {
        const char *log, *expected;
    } rows[] = {
        {"[0] a\n", "<0|a\n>"},
        {"[12:err] b\n[3] \n", "<12e|b\n><3|\n>"},
        {"[1+] half\n[1] whole\n", "<1|half><1|whole\n>"},
        {"[1:err+] half\n", "<1e|half>"},
        {"{\"event\":\"ended\"}\n", "({\"event\":\"ended\"})"},
        {"[4294967295] last\n", "<4294967295|last\n>"},
        {"[4294967296] too many\n", "([4294967296] too many)"},
        {"[99999999999999999999] x\n", "([99999999999999999999] x)"},
        {"[-1] x\n[] x\n[1]x\n[1:out] x\n[a] x\n", "([-1] x)([] x)([1]x)([1:out] x)([a] x)"},
        {"[1+:err] x\n", "([1+:err] x)"},
        {"\n", "()"},
        {"[7] unfinished", "<7|unfinished\n>"},
        {"[7", "([7)"},
        {"[0] [1] inner\n", "<0|[1] inner\n>"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(rows[i].log, rows[i].expected, false);
}

static void times_before_lines(void **state)
{
    (void)state;
    check("2026-11-21T15:24:42.123456789Z [0] a\n2026-11-21T15:24:42.200000000Z [0] seen before\n"
          "2026-11-21T15:24:43.000000000+01:00 {}\n2026-11-21T15:24:43.000000000Z \nno time\n",
          "42.123456789Z<0|a\n>43.000000000+01:00({})43.000000000Z()(no time)", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_come_apart),
                                       cmocka_unit_test(times_before_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
