/* SPDX-License-Identifier: Apache-2.0 */
/* Which line counts as the failure of a run, and which warning as its cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/failure_lines.h"

struct lines {
    struct failure_lines lines;
    struct result result;
};

static void take(struct lines *l, const char *line)
{
    failure_lines_take(&l->lines, line, strlen(line), &l->result);
}

static void begin(struct lines *l)
{
    *l = (struct lines){0};
    result_init(&l->result);
}

static void test_an_echo_gives_way(void **state)
{
    struct lines l;
    (void)state;
    begin(&l);
    take(&l, "srun: error: a: task 3: Killed");
    assert_string_equal(l.result.failure.kind, "launcher");
    take(&l, " .. a pid 7: Test failure common.cu:401");
    assert_string_equal(l.result.failure.kind, "test");
    assert_string_equal(l.result.failure.host, "a");
    take(&l, "b: Test NCCL failure x.cu:1 'remote process exited or there was a network error / '");
    assert_string_equal(l.result.failure.host, "b");
    take(&l, "c: Test CUDA failure x.cu:2 'out of memory'");
    assert_string_equal(l.result.failure.kind, "test-cuda");
    take(&l, "d: Test NCCL failure x.cu:3 'internal error / '");
    assert_string_equal(l.result.failure.host, "c");
    assert_string_equal(l.result.failure.text, "Test CUDA failure x.cu:2 'out of memory'");
    result_done(&l.result);
}

static void test_warning_of_the_host(void **state)
{
    struct lines l;
    char line[128];
    (void)state;
    begin(&l);
    take(&l, "a:1:2 [0] x.cc:1 NCCL WARN first");
    take(&l, "a:1:2 [0] x.cc:2 NCCL WARN second");
    take(&l, "b:1:2 [0] NCCL WARN of b");
    take(&l, "a: Test NCCL failure x.cu:3 'internal error / '");
    assert_string_equal(l.result.failure.cause, "a: second (x.cc:2)");
    begin(&l);
    for (unsigned i = 0; i < 3 * FAILURE_HOSTS; i++) { /* more hosts than are kept */
        snprintf(line, sizeof line, "host-%u:1:2 [0] x.cc:%u NCCL WARN number %u", i, i, i);
        take(&l, line);
    }
    take(&l, "other: Test NCCL failure x.cu:3 'internal error / '");
    assert_string_equal(l.result.failure.cause, "host-47: number 47 (x.cc:47)");
    begin(&l);
    take(&l, "a: Test NCCL failure x.cu:3 'internal error / '");
    take(&l, "NCCL WARN \033 without a head");
    assert_string_equal(l.result.failure.cause, "? without a head");
}

static void test_launcher_behind_an_end(void **state)
{
    struct lines l;
    char launcher[RESULT_FAILURE], warning[RESULT_FAILURE];
    (void)state;
    begin(&l);
    take(&l, "command terminated with exit code 1");
    failure_lines_end(&l.lines, &l.result, launcher, warning);
    assert_string_equal(l.result.failure.kind, "launcher");
    assert_string_equal(launcher, "");
    l.result.ended = true;
    failure_lines_end(&l.lines, &l.result, launcher, warning);
    assert_string_equal(l.result.failure.kind, "");
    assert_string_equal(launcher, "command terminated with exit code 1");
}

static void test_whose_line_it_is(void **state)
{
    (void)state;
    assert_true(failure_line_is("x: Test timeout (5s) common.cu:1", 32));
    assert_false(failure_line_is("srun: error: x", 14));
    assert_false(failure_line_is("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_echo_gives_way), cmocka_unit_test(test_warning_of_the_host),
        cmocka_unit_test(test_launcher_behind_an_end), cmocka_unit_test(test_whose_line_it_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
