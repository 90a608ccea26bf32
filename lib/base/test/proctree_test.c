/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/proctree.h"

#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/test/skip.h"

static bool no_memory;

/* By the linker's --wrap. */
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
    return no_memory ? NULL : __real_realloc(old, size);
}

static pid_t sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    assert_true(pid > 0);
    return pid;
}

static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static bool is(pid_t pid, void *arg)
{
    return pid == *(pid_t *)arg;
}

static void test_descendants(void **state)
{
    (void)state;
    pid_t one = sleeper(), two = sleeper();
    assert_int_equal(proctree_parent(one), getpid());
    assert_int_equal(proctree_signal(getpid(), SIGUSR1, is, &one), 1);
    assert_int_equal(end_of(two), SIGUSR1);
    assert_int_equal(proctree_signal(getpid(), SIGKILL, NULL, NULL), 1);
    assert_int_equal(end_of(one), SIGKILL);
    assert_int_equal(proctree_parent(one), -1);
}

/* A grandchild, too, which has no number to be found by but its parent's. */
static void test_descendants_without_memory(void **state)
{
    char byte;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sleeper();
        (void)!write(ends[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    no_memory = true;
    size_t below_child = proctree_signal(child, SIGKILL, NULL, NULL);
    size_t below_us = proctree_signal(getpid(), SIGKILL, is, &child); /* it is a zombie */
    no_memory = false;
    kill(child, SIGKILL);
    assert_int_equal(end_of(child), SIGKILL);
    assert_int_equal(below_child, 1);
    assert_int_equal(below_us, 1);
    close(ends[0]);
    close(ends[1]);
}

static void test_exiting(void **state)
{
    siginfo_t info;
    (void)state;
    pid_t pid = sleeper();
    assert_false(proctree_is_exiting(pid));
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(proctree_is_exiting(pid));
    assert_int_equal(end_of(pid), SIGKILL);
    assert_false(proctree_is_exiting(pid));
}

/* A child with this number, as clone3(2) gives it to those who may ask. */
static pid_t sleeper_as(pid_t pid)
{
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    pid_t made = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (made == 0)
        for (;;)
            pause();
    return made;
}

static bool replaced;

/* Called for each process between the look at /proc and the signal. */
static bool replace(pid_t pid, void *arg)
{
    (void)arg;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    usleep(20000); /* two ticks: who is born in the same one cannot be told apart */
    replaced = sleeper_as(pid) == pid;
    return false;
}

static void test_a_number_that_is_anothers_now(void **state)
{
    (void)state;
    pid_t pid = sleeper();
    size_t signalled = proctree_signal(getpid(), SIGTERM, replace, NULL);
    if (!replaced)
        skip_for("needs root, for a process with a number of our choice");
    assert_int_equal(signalled, 0);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it lives */
    kill(pid, SIGKILL);
    assert_int_equal(end_of(pid), SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descendants),
        cmocka_unit_test(test_descendants_without_memory),
        cmocka_unit_test(test_exiting),
        cmocka_unit_test(test_a_number_that_is_anothers_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
