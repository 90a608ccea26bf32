/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of OOM kills, in the words of each kernel file that has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/host/oom.h"

static int file_of(const char *text)
{
    char path[] = "/tmp/oom_test.XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static void each_kill_is_told_once(void **state)
{
    (void)state;
    struct oom oom = {.fd = file_of("low 0\noom 9\noom_kill 3\noom_group_kill 7\n"), .answered = 1};
    assert_true(oom_take_kill(&oom));
    assert_true(oom_take_kill(&oom));
    assert_false(oom_take_kill(&oom));
    oom_done(&oom);
    assert_false(oom_take_kill(&oom));
}

static void version_1_and_foreign_text(void **state)
{
    (void)state;
    struct oom oom = {.fd = file_of("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")};
    assert_true(oom_take_kill(&oom));
    assert_false(oom_take_kill(&oom));
    oom_done(&oom);
    oom = (struct oom){.fd = file_of("oom_kill_disable 5\nunder_oom 0")};
    assert_false(oom_take_kill(&oom));
    oom_done(&oom);
}

/* Where it may not be, it says so and nothing has changed. */
static void exempt_or_not(void **state)
{
    (void)state;
    char before[OOM_SCORE_SIZE], after[OOM_SCORE_SIZE];
    bool exempt = oom_exempt(before);
    assert_int_equal(oom_exempt(after), exempt);
    assert_string_equal(after, exempt ? "-1000\n" : before);
}

/* Whatever this machine has: nothing was killed between two calls. */
static void this_machine(void **state)
{
    (void)state;
    struct oom oom;
    oom_init(&oom);
    assert_false(oom_take_kill(&oom));
    oom_done(&oom);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kill_is_told_once),
        cmocka_unit_test(version_1_and_foreign_text),
        cmocka_unit_test(exempt_or_not),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
