/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/child/forked.h"

#define LONG ((size_t)300000) /* more than a pipe holds */

struct call {
    forked_fn fn;
    unsigned ended, ticks;
    struct buf answer;
};

static void on_ended(const struct buf *answer, void *arg)
{
    struct call *call = arg;
    call->ended++;
    buf_add(&call->answer, answer->data, answer->len);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ((struct call *)arg)->ticks++;
}

/* To its end, with the loop that has other work. */
static void run(struct event_base *base, struct call *call, int signo)
{
    struct timeval tick = timeval_from_ms(10);
    struct forked *forked = NULL;
    struct event *event = event_new(base, -1, EV_PERSIST, on_tick, call);
    event_add(event, &tick);
    assert_int_equal(forked_start(base, call->fn, on_ended, call, &forked), 0);
    assert_int_equal(call->ended, 0);
    while (!call->ended) {
        event_base_loop(base, EVLOOP_ONCE);
        if (!call->ended && signo && call->ticks >= 3)
            forked_signal(forked, signo);
    }
    event_free(event);
    assert_int_equal(call->ended, 1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* What it has of ours, in words. */
static void describes(void *arg, int answer)
{
    struct stat null, own;
    sigset_t mask;
    struct call *call = arg;
    call->ticks = 1000000; /* which is lost */
    sigprocmask(SIG_SETMASK, NULL, &mask);
    stat("/dev/null", &null);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) < 0 || own.st_rdev != null.st_rdev)
            dprintf(answer, "descriptor %d; ", fd);
    for (int fd = answer + 1; fd < 1000; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            dprintf(answer, "descriptor %d; ", fd);
    for (int signo = 1; signo < NSIG; signo++)
        if (sigismember(&mask, signo) == 1)
            dprintf(answer, "signal %d; ", signo);
    dprintf(answer, "group %d", getpgrp() == getpid());
}

static void writes_long(void *arg, int answer)
{
    char bytes[1000];
    (void)arg;
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < LONG / sizeof bytes; i++)
        fd_write_all(answer, bytes, sizeof bytes);
}

static void sleeps(void *arg, int answer)
{
    (void)arg;
    fd_write_all(answer, "begun", 5);
    for (;;)
        pause();
}

static void test_child_is_as_a_new_program(void **state)
{
    struct event_base *base = event_base_new();
    struct call call = {.fn = describes};
    sigset_t some, before;
    (void)state;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, &before);
    int high = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 500);
    run(base, &call, 0);
    assert_string_equal(call.answer.data, "group 1");
    assert_true(call.ticks < 1000000);
    close(high);
    sigprocmask(SIG_SETMASK, &before, NULL);
    buf_done(&call.answer);
    event_base_free(base);
}

static void test_long_answer(void **state)
{
    struct event_base *base = event_base_new();
    struct call call = {.fn = writes_long};
    (void)state;
    run(base, &call, 0);
    assert_int_equal(call.answer.len, LONG);
    buf_done(&call.answer);
    event_base_free(base);
}

static void test_signal_ends_it(void **state)
{
    struct event_base *base = event_base_new();
    struct call call = {.fn = sleeps};
    (void)state;
    run(base, &call, SIGTERM);
    assert_true(call.answer.len == 0 || strcmp(call.answer.data, "begun") == 0);
    buf_done(&call.answer);
    event_base_free(base);
}

static void test_freed_before_its_end(void **state)
{
    struct event_base *base = event_base_new();
    struct call call = {.fn = sleeps};
    struct forked *forked = NULL;
    (void)state;
    assert_int_equal(forked_start(base, call.fn, on_ended, &call, &forked), 0);
    forked_free(forked);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(call.ended, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    event_base_free(base);
}

static void on_alarm(int signo)
{
    (void)signo;
}

/* Its pages keep it from ending at once. */
static void test_signals_while_it_is_freed(void **state)
{
    const size_t size = (size_t)64 << 20;
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    struct sigaction interrupt = {.sa_handler = on_alarm}, before;
    struct event_base *base = event_base_new();
    struct call call = {.fn = sleeps};
    char *pages = malloc(size);
    (void)state;
    assert_non_null(pages);
    memset(pages, 'x', size);
    sigaction(SIGALRM, &interrupt, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 10; i++) {
        struct forked *forked = NULL;
        assert_int_equal(forked_start(base, call.fn, on_ended, &call, &forked), 0);
        forked_free(forked);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    free(pages);
    event_base_free(base);
}

/* One whose caller is killed does not go on for nobody. */
static void test_caller_that_ends(void **state)
{
    int status = 0;
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t caller = fork();
    if (caller == 0) {
        struct event_base *base = event_base_new();
        struct call call = {.fn = sleeps};
        struct forked *forked = NULL;
        if (forked_start(base, call.fn, on_ended, &call, &forked) < 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(caller, &status, 0), caller);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(waitpid(-1, &status, 0) > 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child_is_as_a_new_program),
        cmocka_unit_test(test_long_answer),
        cmocka_unit_test(test_signal_ends_it),
        cmocka_unit_test(test_freed_before_its_end),
        cmocka_unit_test(test_signals_while_it_is_freed),
        cmocka_unit_test(test_caller_that_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
