/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/bench/runs.h"

#define BEGIN "{\"kind\":\"begin\",\"collective\":\"all_reduce\"}\n"
#define ROW                                                                                        \
    "{\"kind\":\"row\",\"size\":1024,\"out_of_place\":{\"time\":10,\"alg_bw\":1,\"bus_bw\":2,"     \
    "\"nwrong\":0}}\n"
#define END "{\"kind\":\"end\",\"end_time\":\"2026-11-22 07:10:00\"}\n"

static void assert_incomplete(const struct run *run, const char *const *expected)
{
    CLEANUP(strlist_done) struct strlist why = STRLIST_INIT;
    size_t count = 0;
    while (count < 2 && expected[count])
        count++;
    assert_int_equal(run_is_incomplete(run, &why), count > 0);
    assert_int_equal(why.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(why.items[i], expected[i]);
}

static void files_of_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t runs, rows;      /* of the last run */
        const char *missing;    /* of the last run; "": nothing */
        const char *incomplete; /* likewise; NULL: it is complete */
    } table[] = {
        {BEGIN ROW END, 1, 1, "", NULL},
        {"\xef\xbb\xbf \n" BEGIN ROW END, 1, 1, "", NULL}, /* a byte order mark, and blanks */
        {BEGIN ROW ROW "\n\n" END "\n", 1, 2, "", NULL},
        {BEGIN END BEGIN ROW END, 2, 1, "", NULL},
        {BEGIN ROW, 1, 1, "its line of kind end is missing",
         "the run did not end, after 1 size: its line of kind end is missing"},
        {BEGIN ROW ROW, 1, 2, "its line of kind end is missing",
         "the run did not end, after 2 sizes: its line of kind end is missing"},
        {BEGIN "{\"kind\":\"ro", 1, 0, "its last line is cut off",
         "the run did not end, before it measured anything: its last line is cut off"},
        {BEGIN "{\"kind\":\"later\"}\n" END, 1, 0, "", NULL},
        {"{\"results\":[],\"end_time\":\"x\"}", 1, 0, "", NULL},
        {"{\"results\":[]}", 1, 0, "its end_time is missing",
         "the run did not end, before it measured anything: its end_time is missing"},
        {"{\n\"results\": [ ]\n}\n", 1, 0, "its end_time is missing",
         "the run did not end, before it measured anything: its end_time is missing"},
        {BEGIN, 1, 0, "its line of kind end is missing",
         "the run did not end, before it measured anything: its line of kind end is missing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct runs runs = {0};
        struct drarun_error err = {0};
        if (runs_read(table[i].text, strlen(table[i].text), "f", &runs, &err) != 0)
            fail_msg("%zu: %s", i, err.text);
        assert_int_equal(runs.count, table[i].runs);
        const struct run *last = runs.list[runs.count - 1];
        assert_int_equal(last->result.row_count, table[i].rows);
        assert_string_equal(last->missing, table[i].missing);
        assert_int_equal(last->result.ended, !table[i].incomplete);
        assert_incomplete(last, (const char *const[]){table[i].incomplete, NULL});
        runs_done(&runs);
        assert_int_equal(runs.count, 0);
    }
}

static void what_is_no_result(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } table[] = {
        {"", "f: it is empty"},
        {" \n\t", "f: it is empty"},
        {"\xef\xbb\xbf", "f: it is empty"},
        {ROW, "f:1: expected a line with \"kind\": \"begin\" first"},
        {"{\"kind\":\"later\"}\n" BEGIN, "f:1: expected a line with \"kind\": \"begin\" first"},
        {BEGIN "\n{\"kind\":3\n" END, "f:3:"},
        {BEGIN "[]\n", "f:2: the document: expected an object"},
        {"{\"results\":", "f:1:11: unexpected token near end of file: it is cut off: the run that "
                          "wrote it did not end"},
        {"{\n \"results\" 1}", "f:2:"},
        {"{}", "f: results: expected it, as nccl-tests -J and drarun-bench write it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct runs runs = {0};
        struct drarun_error err = {0};
        assert_int_equal(runs_read(table[i].text, strlen(table[i].text), "f", &runs, &err),
                         -EINVAL);
        assert_int_equal(err.kind, DRARUN_ERR_SPEC);
        if (strncmp(err.text, table[i].error, strlen(table[i].error)) != 0)
            fail_msg("%s", err.text);
        runs_done(&runs);
    }
}

static void why_a_run_is_incomplete(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *host, *cause;
        bool ended;
        const char *why[3];
    } table[] = {
        {"", "", "", true, {NULL}},
        {"", "", "h: lost", true, {NULL}}, /* no failure had it as its cause */
        {"", "", "", false, {"the run did not end, after 1 size: its end is missing"}},
        {"test-nccl", "", "", true, {"the run failed: broken"}},
        {"test-nccl", "n1", "", true, {"the run failed on n1: broken"}},
        {"test", "", "", false, {"the run failed after 1 size: broken"}},
        {"test-cuda",
         "n1",
         "n2: lost",
         false,
         {"the run failed on n1 after 1 size: broken", "before it NCCL warned on n2: lost"}},
        {"launcher", "n1", "", true, {"the job failed: broken"}},
        {"launcher",
         "",
         "n2: lost",
         false,
         {"the job failed: broken", "before it NCCL warned on n2: lost"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct runs runs = {0};
        struct run *run = runs_add(&runs);
        struct result_row *row = result_add_row(&run->result);
        assert_int_equal(runs.count, 1);
        row->out_of_place.measured = true;
        run->result.ended = table[i].ended;
        snprintf(run->missing, sizeof run->missing, "%s", "its end is missing");
        snprintf(run->result.failure.kind, sizeof run->result.failure.kind, "%s", table[i].kind);
        snprintf(run->result.failure.host, sizeof run->result.failure.host, "%s", table[i].host);
        snprintf(run->result.failure.cause, sizeof run->result.failure.cause, "%s", table[i].cause);
        snprintf(run->result.failure.text, sizeof run->result.failure.text, "%s", "broken");
        assert_incomplete(run, table[i].why);
        runs_done(&runs);
    }
}

static void runs_stay_where_they_are(void **state)
{
    (void)state;
    struct runs runs = {0};
    const struct run *first = runs_add(&runs);
    for (int i = 0; i < 100; i++)
        assert_non_null(runs_add(&runs));
    assert_ptr_equal(runs.list[0], first);
    assert_int_equal(runs.count, 101);
    assert_true(first->result.wrong_rows < 0); /* not known */
    runs_done(&runs);
    assert_null(runs.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_json),
        cmocka_unit_test(what_is_no_result),
        cmocka_unit_test(why_a_run_is_incomplete),
        cmocka_unit_test(runs_stay_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
