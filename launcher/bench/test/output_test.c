/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/bench/output.h"
#include "launcher/bench/results.h"
#include "lib/bench/marked.h"

static void add(const struct sink_reader *reader, const char *text, size_t length,
                struct buf *shown)
{
    struct buf piece = BUF_INIT;
    assert_int_equal(reader->read(reader->arg, text, length, &piece), 0);
    buf_add(shown, piece.data ? piece.data : "", piece.len);
    buf_done(&piece);
}

/* However the bytes are cut. */
static void test_marked_lines_are_kept_and_not_shown(void **state)
{
    static const char text[] = "# a table\n" MARKED "0.{}\n 8 2\n" MARKED "0.{\"a\": 1}\n#dra";
    (void)state;
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        struct bench_output output;
        struct buf shown = BUF_INIT;
        bench_output_init(&output);
        const struct sink_reader reader = bench_output_reader(&output);
        for (size_t at = 0; at < strlen(text); at += piece)
            add(&reader, text + at, strlen(text) - at < piece ? strlen(text) - at : piece, &shown);
        assert_string_equal(shown.data, "# a table\n 8 2\n");
        reader.end(reader.arg, &shown);
        assert_string_equal(shown.data, "# a table\n 8 2\n#dra");
        assert_string_equal(output.text.data, text);
        buf_done(&shown);
        bench_output_done(&output);
    }
}

/* More than results may be is shown, and refused by who reads them. */
static void test_too_much_is_not_kept(void **state)
{
    struct bench_output output;
    struct buf shown = BUF_INIT;
    struct drarun_error err = {0};
    struct runs runs = {0};
    (void)state;
    bench_output_init(&output);
    const struct sink_reader reader = bench_output_reader(&output);
    output.text.len = RESULTS_TEXT_MAX + 1; /* as if they were there */
    add(&reader, "x\n", 2, &shown);
    assert_string_equal(shown.data, "x\n");
    assert_int_equal(output.text.len, RESULTS_TEXT_MAX + 1);
    assert_true(results_read_text(&output.text, "the output", &runs, &err) < 0);
    assert_string_equal(err.text, "the output: larger than 256 MiB");
    buf_done(&shown);
    bench_output_done(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marked_lines_are_kept_and_not_shown),
        cmocka_unit_test(test_too_much_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
