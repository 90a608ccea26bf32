/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/warnings/warnings.h"

static void names(void **unused)
{
    (void)unused;
    for (int code = WARNING_NONE + 1; code < WARNING_COUNT; code++) {
        const char *name = warning_name(code);
        assert_true(strlen(name) > 4);
        assert_int_equal(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), strlen(name));
        for (int other = WARNING_NONE; other < code; other++)
            assert_string_not_equal(name, warning_name(other));
        assert_non_null(warning_meaning(code));
        assert_non_null(warning_cure(code));
    }
    assert_string_equal(warning_name(WARN_NO_GPU), "NO_GPU");
    assert_string_equal(warning_name(WARNING_COUNT), "?");
    assert_null(warning_meaning(WARNING_COUNT));
    assert_null(warning_cure(WARNING_NONE));
}

/* By name, worker, detail, however they came in: 40 of them, so that the list grows too. */
static void order(void **unused)
{
    struct warnings w = {0};
    (void)unused;
    for (int i = 0; i < 10; i++) {
        warnings_add(&w, WARN_UNEVEN_NICS, 9 - i, "%d NICs", i);
        warnings_add(&w, WARN_UNEVEN_GPUS, i % 2, "%c", 'z' - i);
        warnings_add(&w, WARN_UNEVEN_GPUS, WORKER_NONE, "all");
        warnings_add(&w, WARN_C2C_GDR_OFF, 3, "pair %d", i);
    }
    warnings_sort(&w);
    assert_int_equal(w.count, 40);
    assert_false(w.failed);
    for (size_t i = 1; i < w.count; i++) {
        const struct warning *a = &w.list[i - 1], *b = &w.list[i];
        int by_name = strcmp(warning_name(a->code), warning_name(b->code));
        assert_true(by_name <= 0);
        if (by_name == 0)
            assert_true(a->worker < b->worker ||
                        (a->worker == b->worker && strcmp(a->detail, b->detail) <= 0));
    }
    assert_string_equal(w.list[0].detail, "pair 0");
    assert_int_equal(w.list[10].worker, WORKER_NONE);
    warnings_done(&w);
    assert_null(w.list);
    warnings_sort(&w); /* of nothing */
    warnings_done(&w);
}

static void have(void **unused)
{
    struct warnings w = {0};
    (void)unused;
    assert_false(warnings_have(&w, WARN_NO_GPU, 0));
    warnings_add(&w, WARN_NUMA_UNKNOWN, 2, "gpu-0");
    assert_true(warnings_have(&w, WARN_NUMA_UNKNOWN, 2));
    assert_false(warnings_have(&w, WARN_NUMA_UNKNOWN, 1));
    assert_false(warnings_have(&w, WARN_NUMA_UNKNOWN, WORKER_NONE));
    assert_false(warnings_have(&w, WARN_NO_GPU, 2));
    warnings_done(&w);
}

static void write_wording(const struct warning *warning, const char *workers, void *arg)
{
    char *text = arg;
    snprintf(text + strlen(text), 400 - strlen(text), "%s|%s|%s\n", warning_name(warning->code),
             workers, warning->detail);
}

/* Each wording once, however many workers have it. */
static void wordings(void **unused)
{
    struct warnings w = {0};
    char text[400] = "";
    (void)unused;
    for (int i = 0; i < 64; i++) {
        warnings_add(&w, WARN_IBDEV_UNKNOWN, 63 - i, "nic-1");
        if (i % 2 || i < 8)
            warnings_add(&w, WARN_IBDEV_UNKNOWN, i, "nic-0");
    }
    warnings_add(&w, WARN_IBDEV_UNKNOWN, 63, "nic-1"); /* again */
    warnings_add(&w, WARN_UNEVEN_NICS, WORKER_NONE, "8 and 4");
    warnings_add(&w, WARN_NO_RDMA_NIC, 5, "x");
    assert_int_equal(warnings_each_wording(&w, write_wording, text), 0);
    assert_string_equal(text,
                        "IBDEV_UNKNOWN|workers 0-7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,"
                        "41,43,45,47,49,51,53,55,57,59,61,63|nic-0\nIBDEV_UNKNOWN|workers 0-63|"
                        "nic-1\nNO_RDMA_NIC|worker 5|x\nUNEVEN_NICS||8 and 4\n");
    warnings_done(&w);
    text[0] = '\0';
    assert_int_equal(warnings_each_wording(&w, write_wording, text), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(order),
                                       cmocka_unit_test(have), cmocka_unit_test(wordings)};
    return cmocka_run_group_tests_name("warnings", tests, NULL, NULL);
}
