/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "jobs/ranks/worker_ranges.h"
#include "launcher/job/notes.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static void write_line(const uint32_t *workers, uint32_t count, const char *text, void *arg)
{
    struct buf *out = arg;
    worker_ranges(workers, count, 16, out);
    buf_printf(out, ": %s\n", text);
}

struct said {
    uint32_t worker;
    const char *text;
};

static void check(const struct said *said, size_t count, const char *expected)
{
    struct notes notes = {0};
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(notes_add(&notes, said[i].worker, said[i].text), 0);
    notes_take(&notes, write_line, &out);
    assert_string_equal(out.data ? out.data : "", expected);
    assert_int_equal(notes.count, 0);
    buf_done(&out);
    notes_take(&notes, write_line, &out); /* they were forgotten */
    assert_null(out.data);
    notes_done(&notes);
}

static void test_each_wording_once(void **state)
{
    static const struct said mixed[] = {
        {2, "same"}, {0, "b"}, {0, "a"}, {1, "same"}, {3, "same"}, {0, "a"}, {7, "same"}, {3, "c"},
    };
    static const struct said ranks[] = {{0, "rank 2"}, {0, "rank 10"}, {0, "rank 1"}};
    (void)state;
    check(NULL, 0, "");
    check(mixed, 1, "2: same\n");
    /* by the first worker of a wording, and as that one sent them */
    check(mixed, ARRAY_LEN(mixed), "0: b\n0: a\n1-3,7: same\n3: c\n");
    check(ranks, ARRAY_LEN(ranks), "0: rank 2\n0: rank 10\n0: rank 1\n");
}

static void test_what_is_kept_is_bounded(void **state)
{
    struct notes notes = {0};
    struct buf out = BUF_INIT;
    char *large = calloc(1, NOTES_BYTES_MAX);
    (void)state;
    memset(large, 'x', NOTES_BYTES_MAX - 1);
    assert_int_equal(notes_add(&notes, 0, large), 0);
    assert_int_equal(notes_add(&notes, 0, "y"), 0);
    assert_int_equal(notes_add(&notes, 0, "z"), -ENOSPC);
    notes_take(&notes, write_line, &out);
    for (uint32_t i = 0; i < NOTES_MAX; i++)
        assert_int_equal(notes_add(&notes, i, "y"), 0);
    assert_int_equal(notes_add(&notes, 0, "y"), -ENOSPC);
    buf_done(&out);
    notes_take(&notes, write_line, &out);
    assert_string_equal(out.data, "0-4095: y\n");
    buf_done(&out);
    notes_done(&notes);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_wording_once),
        cmocka_unit_test(test_what_is_kept_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
