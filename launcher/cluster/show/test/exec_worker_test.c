/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/show/exec_worker.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define RANKS_MAX 8

#define SIZES(ranks, workers) "'ranks': " ranks ", 'workers': {'count': " workers "}"
#define ROLES(list) "'roles': [" list "]"
#define ROLE(ranks, workers) "{'ranks': " ranks ", 'workers': " workers "}"

static void test_worker_of_each_rank(void **state)
{
    static const struct {
        const char *doc;
        size_t ranks;
        uint32_t workers[RANKS_MAX]; /* by rank */
    } rows[] = {
        {"{" SIZES("1", "1") "}", 1, {0}},
        {"{" SIZES("5", "2") "}", 5, {0, 0, 0, 1, 1}},
        {"{" SIZES("1", "1") ", 'rankOrder': [0]}", 1, {0}},
        {"{" SIZES("4", "4") ", 'rankOrder': [2, 0, 3, 1]}", 4, {2, 0, 3, 1}},
        {"{" SIZES("6", "3") ", 'rankOrder': [1, 2, 0]}", 6, {1, 1, 2, 2, 0, 0}},
        {"{" SIZES("6", "3") ", " ROLES(ROLE("1", "1") ", " ROLE("5", "2")) "}",
         6,
         {0, 1, 1, 1, 2, 2}},
        {"{" SIZES("4",
                   "3") ", " ROLES(ROLE("2", "1") ", " ROLE("2", "2")) ", 'rankOrder': [2, 1, 0]}",
         4,
         {2, 2, 1, 0}},
        /* by number: no order of these workers */
        {"{" SIZES("3", "3") ", 'rankOrder': []}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': [2, 1]}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': [3, 2, 1, 0]}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': [2, 1, 2]}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': [3, 2, 1]}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': [2, 1, -1]}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': [2, 1, 4294967296]}", 3, {0, 1, 2}},
        {"{" SIZES("3", "3") ", 'rankOrder': {'0': 2}}", 3, {0, 1, 2}},
        /* one part: roles that are not all of the job, or more */
        {"{" SIZES("4", "2") ", " ROLES(ROLE("1", "1") ", " ROLE("2", "1")) "}", 4, {0, 0, 1, 1}},
        {"{" SIZES("4", "2") ", " ROLES(ROLE("3", "1") ", " ROLE("2", "1")) "}", 4, {0, 0, 1, 1}},
        {"{" SIZES("4", "2") ", " ROLES(ROLE("3", "1") ", " ROLE("1", "2")) "}", 4, {0, 0, 1, 1}},
        {"{" SIZES("4", "2") ", " ROLES(ROLE("3", "2")) "}", 4, {0, 0, 1, 1}},
        {"{" SIZES("4", "2") ", " ROLES(ROLE("4", "1") ", " ROLE("0", "1")) "}", 4, {0, 0, 1, 1}},
        {"{" SIZES("4", "2") ", " ROLES(ROLE("5", "1") ", " ROLE("-1", "1")) "}", 4, {0, 0, 1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *doc = quoted_json(rows[i].doc, 0);
        struct drarun_error err = {0};
        uint32_t worker = UINT32_MAX;
        for (uint32_t rank = 0; rank < rows[i].ranks; rank++)
            if (exec_worker_of_rank(doc, "a", rank, &worker, &err) < 0 ||
                worker != rows[i].workers[rank])
                fail_msg("%s: rank %u: worker %u, %s", rows[i].doc, rank, worker, err.text);
        assert_int_equal(exec_worker_of_rank(doc, "a", (uint32_t)rows[i].ranks, &worker, &err),
                         -ENOENT);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
        json_decref(doc);
    }
}

static void test_orders_of_any_length(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 64; workers++) {
        json_t *order = json_array();
        for (uint32_t i = 0; i < workers; i++)
            json_array_append_new(order, json_integer(workers - 1 - i));
        json_t *doc = json_pack("{s:i, s:{s:i}, s:o}", "ranks", (int)workers, "workers", "count",
                                (int)workers, "rankOrder", order);
        assert_non_null(doc);
        for (uint32_t rank = 0; rank < workers; rank++) {
            uint32_t worker = UINT32_MAX;
            assert_int_equal(exec_worker_of_rank(doc, "a", rank, &worker, NULL), 0);
            assert_int_equal(worker, workers - 1 - rank);
        }
        json_decref(doc);
    }
}

static void test_no_such_rank(void **state)
{
    struct drarun_error err = {0};
    uint32_t worker = 0;
    json_t *doc = quoted_json("{" SIZES("4", "2") "}", 0);
    (void)state;
    assert_int_equal(exec_worker_of_rank(doc, "train", UINT32_MAX, &worker, &err), -ENOENT);
    assert_string_equal(err.text, "train has ranks 0 to 3");
    json_decref(doc);
}

/* Any account that may write ConfigMaps of the namespace may have written it. */
static void test_sizes_that_no_job_has(void **state)
{
    static const char *const docs[] = {
        "{" SIZES("0", "1") "}",
        "{" SIZES("-1", "1") "}",
        "{" SIZES("1000001", "1") "}",
        "{" SIZES("4294967297", "1") "}",
        "{" SIZES("'1'", "1") "}",
        "{" SIZES("1", "0") "}",
        "{" SIZES("1", "-1") "}",
        "{" SIZES("1", "10001") "}",
        "{" SIZES("1", "4294967297") "}",
        "{'ranks': 1, 'workers': 1}",
        "{}",
        "[]",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
        json_t *doc = quoted_json(docs[i], 0);
        struct drarun_error err = {0};
        uint32_t worker = 0;
        if (exec_worker_of_rank(doc, "train", 0, &worker, &err) != -EPROTO ||
            !strstr(err.text, "ConfigMap train-status: expected 1 to 1000000 ranks and 1 to 10000"))
            fail_msg("%s: %s", docs[i], err.text);
        assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
        json_decref(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_of_each_rank),
        cmocka_unit_test(test_orders_of_any_length),
        cmocka_unit_test(test_no_such_rank),
        cmocka_unit_test(test_sizes_that_no_job_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
