/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker/host/vitals.h"

static void burn(long ms)
{
    struct timespec now, start;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

/* A parent that waits and a child that has worked, as a shell and its program. */
static void finds_the_busy_one(void **state)
{
    (void)state;
    int ready[2], pids[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(pids), 0);
    pid_t rank = fork();
    if (rank == 0) {
        pid_t child = fork();
        if (child == 0) {
            burn(100);
            (void)!write(ready[1], "x", 1);
            pause();
            _exit(0);
        }
        (void)!write(pids[1], &child, sizeof child);
        pause();
        _exit(0);
    }
    pid_t child = 0;
    assert_int_equal(read(pids[0], &child, sizeof child), sizeof child);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct vitals vitals;
    vitals_read(rank, &vitals);
    assert_int_equal(vitals.pid, child);
    assert_true(vitals.cpu_us >= 80000); /* in ticks of 10 ms */
    assert_string_equal(vitals.name, "vitals_test");
    assert_true(vitals.state == 'S' || vitals.state == 'R');
    assert_int_equal(vitals_cpu_us(rank), vitals.cpu_us);
    kill(child, SIGKILL);
    kill(rank, SIGKILL);
    waitpid(rank, NULL, 0);
}

static void nobody(void **state)
{
    (void)state;
    struct vitals vitals;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    vitals_read(gone, &vitals);
    assert_int_equal(vitals.pid, 0);
    assert_int_equal(vitals.cpu_us, 0);
    assert_string_equal(vitals.wchan, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_busy_one),
        cmocka_unit_test(nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
