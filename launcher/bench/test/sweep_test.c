/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/bench/sweep.h"
#include "lib/base/cleanup.h"

static int read_items(const char *const *items, struct sweep *sweep, struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist list = STRLIST_INIT;
    for (; *items; items++)
        strlist_add(&list, *items);
    return sweep_read(&list, sweep, err);
}

static void test_every_combination_once(void **state)
{
    (void)state;
    static const char *const items[] = {"align=required,none", "nics=1,2,4", NULL};
    static const char *const labels[] = {"align=required nics=1", "align=required nics=2",
                                         "align=required nics=4", "align=none nics=1",
                                         "align=none nics=2",     "align=none nics=4"};
    struct sweep sweep;
    struct drarun_error err = {0};
    assert_int_equal(read_items(items, &sweep, &err), 0);
    assert_int_equal(sweep.cases, ARRAY_LEN(labels));
    for (size_t i = 0; i < sweep.cases; i++) {
        struct bench_choice choice = {.gpus = 8, .workers = 2};
        struct buf label = BUF_INIT;
        sweep_choose(&sweep, i, &choice);
        sweep_label(&sweep, i, &label);
        assert_string_equal(label.data, labels[i]);
        assert_string_equal(choice.align, i < 3 ? "required" : "none");
        assert_int_equal(choice.nics, 1u << i % 3);
        assert_true(choice.gpus == 8 && choice.workers == 2);
        buf_done(&label);
    }
    sweep_done(&sweep);
}

static void test_all_names(void **state)
{
    (void)state;
    static const char *const items[] = {"gpus=3", "workers=4", "ranks-per-worker=5", NULL};
    struct sweep sweep;
    struct drarun_error err = {0};
    struct bench_choice choice = {0};
    assert_int_equal(read_items(items, &sweep, &err), 0);
    sweep_choose(&sweep, 0, &choice);
    assert_true(sweep.cases == 1 && choice.gpus == 3 && choice.workers == 4 &&
                choice.per_worker == 5);
    sweep_done(&sweep);
}

static void test_wrong_words(void **state)
{
    (void)state;
    static const struct {
        const char *items[6], *says;
    } rows[] = {
        {{"size=1"}, "--sweep size=1: expected NAME=VALUE,VALUE with align"},
        {{"nics"}, "--sweep nics: expected NAME=VALUE,VALUE"},
        {{"nics="}, "--sweep nics=: expected NAME=VALUE,VALUE"},
        {{"nics=1,"}, "--sweep nics"},
        {{"nics=0"}, "--sweep nics"},
        {{"align=crossed"}, "--sweep align: expected required, preferred or none, got \"crossed\""},
        {{"nics=1", "nics=2"}, "--sweep nics: it is there twice"},
        {{"nics=1", "gpus=1", "workers=1", "align=none", "ranks-per-worker=1"},
         "at most 4 of them"},
        {{"nics=1,2,3,4,5,6,7,8,9", "gpus=1,2,3,4,5,6,7,8"}, "72 jobs, and 64 are the most"},
        {{"nics=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}, "more than 16 values"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sweep sweep;
        struct drarun_error err = {0};
        assert_true(read_items(rows[i].items, &sweep, &err) < 0);
        if (!strstr(err.text, rows[i].says) || err.kind != DRARUN_ERR_USAGE)
            fail_msg("%s: \"%s\"", rows[i].items[0], err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_combination_once),
                                       cmocka_unit_test(test_all_names),
                                       cmocka_unit_test(test_wrong_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
