/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/shm_clean.h"
#include "worker/modes/guard.h"

/* Of the guard's process and the agent's, for the test's. */
static struct told {
    int rc;
    bool stop;
    pid_t left; /* a process that the agent left */
    char logged[256];
    char session[64], shm[64];
} * told;

static int set_up(void **state)
{
    (void)state;
    signal(SIGINT,
           SIG_DFL); /* a shell starts what it puts into the background with SIGINT ignored */
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told == MAP_FAILED;
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(told, sizeof *told);
}

static void keep_line(void *arg, const struct log_line *line)
{
    (void)arg;
    snprintf(told->logged, sizeof told->logged, "%.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
}

/* A process of its own, as it adopts orphans and blocks signals. */
static void guard(int (*agent)(struct guard *guard, void *arg))
{
    int status;
    *told = (struct told){.session = "/tmp/guard_test.XXXXXX"};
    assert_non_null(mkdtemp(told->session));
    shm_clean_dir(told->session, told->shm, sizeof told->shm);
    pid_t pid = fork();
    if (pid == 0) {
        log_divert(keep_line, NULL);
        struct guard *guard = guard_new();
        if (!guard)
            _exit(1);
        told->rc = guard_run(guard, agent, told, &told->stop, NULL);
        guard_free(guard);
        sigset_t blocked;
        sigprocmask(SIG_BLOCK, NULL, &blocked);
        _exit(sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGCHLD) ? 2 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void assert_removed(bool removed)
{
    assert_int_equal(access(told->session, F_OK), removed ? -1 : 0);
    assert_int_equal(access(told->shm, F_OK), -1);
    rmdir(told->session);
}

static int sees_signals(struct guard *guard, void *arg)
{
    sigset_t blocked;
    struct sigaction action;
    (void)guard;
    if (arg != told)
        return 1;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    sigaction(SIGINT, NULL, &action);
    bool good = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 0 &&
                sigismember(&blocked, SIGCHLD) == 0 && action.sa_handler == SIG_IGN;
    return good ? 7 : 2;
}

static void the_agents_result_is_the_guards(void **state)
{
    (void)state;
    guard(sees_signals);
    assert_int_equal(told->rc, 7);
    assert_false(told->stop);
    assert_string_equal(told->logged, "");
    assert_removed(false);
}

static int leaves_an_orphan_that_failed(struct guard *guard, void *arg)
{
    (void)guard, (void)arg;
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0)
            _exit(3);
        _exit(4);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

static void an_orphan_is_not_taken_for_the_agent(void **state)
{
    (void)state;
    guard(leaves_an_orphan_that_failed);
    assert_int_equal(told->rc, 0);
    assert_removed(false);
}

static void leave(struct guard *guard)
{
    guard_note_session(told->session, guard);
    mkdir(told->shm, 0700);
    if ((told->left = fork()) == 0) {
        setsid();
        for (;;)
            pause();
    }
}

static bool is_gone(pid_t pid)
{
    char path[64], status[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    bool zombie =
        fgets(status, sizeof status, file) && strstr(status, ") Z "); /* nobody reaps it */
    fclose(file);
    return zombie;
}

static void await_gone(pid_t pid)
{
    for (int64_t end = clock_ms() + 60000; !is_gone(pid) && clock_ms() < end;)
        usleep(1000);
    assert_true(is_gone(pid));
}

static int is_killed(struct guard *guard, void *arg)
{
    (void)arg;
    leave(guard);
    raise(SIGKILL);
    return 0;
}

static int ends_amidst_a_job(struct guard *guard, void *arg)
{
    (void)arg;
    leave(guard);
    return 3;
}

static void what_an_agent_left_is_removed(void **state)
{
    (void)state;
    guard(is_killed);
    assert_int_equal(told->rc, 70);
    assert_false(told->stop);
    assert_string_equal(told->logged, "the agent was killed by signal 9: removing what it left");
    await_gone(told->left);
    assert_removed(true);

    guard(ends_amidst_a_job);
    assert_int_equal(told->rc, 3);
    assert_string_equal(told->logged, "");
    await_gone(told->left);
    assert_removed(true);
}

static int ends_after_its_job(struct guard *guard, void *arg)
{
    (void)arg;
    guard_note_session(told->session, guard);
    guard_note_session(NULL, guard);
    return 0;
}

static void a_session_that_is_over_is_not_removed(void **state)
{
    (void)state;
    guard(ends_after_its_job);
    assert_int_equal(told->rc, 0);
    assert_removed(false);
}

static int signo; /* to the guard */

/* Which passes on SIGTERM, whatever it gets. */
static int ends_in_order(struct guard *guard, void *arg)
{
    (void)guard, (void)arg;
    sigset_t term;
    int got = 0;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    kill(getppid(), signo);
    return sigwait(&term, &got) == 0 && got == SIGTERM ? 5 : 6;
}

static int dies_of_it(struct guard *guard, void *arg)
{
    (void)guard, (void)arg;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    kill(getppid(), signo);
    pause();
    return 1;
}

static int dies_of_its_own(struct guard *guard, void *arg)
{
    (void)guard, (void)arg;
    sigset_t none;
    sigemptyset(&none);
    raise(SIGTERM);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return 0;
}

static void signals_end_the_agent_in_order(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        signo = signals[i];
        guard(ends_in_order);
        assert_int_equal(told->rc, 5);
        assert_true(told->stop);
        assert_removed(false);
        guard(dies_of_it);
        assert_int_equal(told->rc, 70);
        assert_true(told->stop);
        assert_string_equal(told->logged, ""); /* it was asked to */
        assert_removed(false);
    }
    guard(dies_of_its_own);
    assert_int_equal(told->rc, 70);
    assert_false(told->stop);
    assert_string_equal(told->logged, "the agent was killed by signal 15: removing what it left");
    assert_removed(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_agents_result_is_the_guards),
        cmocka_unit_test(an_orphan_is_not_taken_for_the_agent),
        cmocka_unit_test(what_an_agent_left_is_removed),
        cmocka_unit_test(a_session_that_is_over_is_not_removed),
        cmocka_unit_test(signals_end_the_agent_in_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
