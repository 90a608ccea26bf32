/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/child/bounded.h"

#define MIB ((size_t)1 << 20)
#define PATIENCE_MS 120000 /* ends hangs: a busy machine gives a second of processor time late */

static const struct bounded_limits limits = {
    .cpu_s = 1, .wall_ms = PATIENCE_MS, .memory = 64 * MIB};

static int works(void *arg, struct drarun_error *err)
{
    (void)err;
    ++*(int *)arg;
    return 0;
}

static int refuses(void *arg, struct drarun_error *err)
{
    (void)arg;
    snprintf(err->path, sizeof err->path, "spec.workers");
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "spec.workers: expected integer, got string");
}

static int never_returns(void *arg, struct drarun_error *err)
{
    (void)err;
    for (;;)
        ++*(volatile int *)arg;
    return 0;
}

static int sleeps(void *arg, struct drarun_error *err)
{
    (void)arg, (void)err;
    for (;;)
        pause();
    return 0;
}

static int takes_memory(void *arg, struct drarun_error *err)
{
    (void)arg;
    for (size_t i = 0; i < 1024; i++)
        if (mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
            MAP_FAILED)
            return error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int crashes(void *arg, struct drarun_error *err)
{
    (void)arg, (void)err;
    raise(SIGSEGV);
    return 0;
}

static int is_killed(void *arg, struct drarun_error *err)
{
    (void)arg, (void)err;
    raise(SIGKILL);
    return 0;
}

static int is_told_to_end(void *arg, struct drarun_error *err)
{
    (void)arg, (void)err;
    raise(SIGTERM);
    return 0;
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    cleanup_dir DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    return count;
}

static const struct {
    const char *name;
    bounded_fn fn;
    int64_t wall_ms;
    int code;
    enum drarun_errkind kind;
    const char *text;
} cases[] = {
    {"works", works, PATIENCE_MS, 0, DRARUN_ERR_NONE, ""},
    {"refuses", refuses, PATIENCE_MS, EINVAL, DRARUN_ERR_SPEC, "spec.workers: expected integer"},
    {"never returns", never_returns, PATIENCE_MS, ETIME, DRARUN_ERR_SPEC,
     "reading it takes more than 1 s of processor time"},
    {"sleeps", sleeps, 1000, ETIMEDOUT, DRARUN_ERR_INFRASTRUCTURE, "not read within 1 s"},
    {"takes memory", takes_memory, PATIENCE_MS, ENOMEM, DRARUN_ERR_SPEC, "more than 64 MiB"},
    {"crashes", crashes, PATIENCE_MS, EFAULT, DRARUN_ERR_SPEC, "signal 11"},
    {"is killed", is_killed, PATIENCE_MS, EINTR, DRARUN_ERR_INFRASTRUCTURE, "somebody else"},
    {"is told to end", is_told_to_end, PATIENCE_MS, EINTR, DRARUN_ERR_INFRASTRUCTURE,
     "somebody else"},
};

struct ended {
    int count, rc;
    struct drarun_error err;
};

static void on_done(int rc, const struct drarun_error *err, void *arg)
{
    struct ended *ended = arg;
    ended->count++;
    ended->rc = rc;
    ended->err = *err;
}

/* Runs the loop until it has ended. */
static int call(struct event_base *base, const struct bounded_limits *given, bounded_fn fn,
                void *arg, struct drarun_error *err)
{
    struct ended ended = {0};
    struct bounded *bounded;
    assert_int_equal(bounded_start(base, given, fn, arg, on_done, &ended, &bounded, err), 0);
    while (!ended.count)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
    assert_int_equal(ended.count, 1);
    *err = ended.err;
    return ended.rc;
}

/* The caller goes on whatever the function does, unchanged and with nothing left. */
static void test_limits(void **state)
{
    struct event_base *base = event_base_new();
    unsigned before = count_descriptors();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bounded_limits given = limits;
        struct drarun_error err = {0};
        int touched = 0;
        given.wall_ms = cases[i].wall_ms;
        int rc = call(base, &given, cases[i].fn, &touched, &err);
        if (rc != -cases[i].code || err.code != cases[i].code || err.kind != cases[i].kind ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %d, kind %d: %s", cases[i].name, rc, err.kind, err.text);
        assert_int_equal(touched, 0);
        assert_int_equal(count_descriptors(), before);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    event_base_free(base);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ++*(int *)arg;
}

static void test_the_loop_runs_meanwhile(void **state)
{
    struct event_base *base = event_base_new();
    struct timeval tick = timeval_from_ms(20);
    struct bounded_limits given = limits;
    struct drarun_error err = {0};
    int ticks = 0;
    (void)state;
    struct event *event = event_new(base, -1, EV_PERSIST, on_tick, &ticks);
    event_add(event, &tick);
    given.wall_ms = 500;
    assert_int_equal(call(base, &given, sleeps, NULL, &err), -ETIMEDOUT);
    assert_true(ticks >= 2);
    event_free(event);
    event_base_free(base);
}

/* Several at once, each with its own end, whatever becomes of the others; one is given up. */
static void test_side_by_side(void **state)
{
    static const bounded_fn fns[] = {sleeps, refuses, crashes, works, never_returns};
    static const int codes[] = {0, EINVAL, EFAULT, 0, ETIME};
    struct event_base *base = event_base_new();
    struct bounded *calls[ARRAY_LEN(fns)] = {0};
    struct ended ends[ARRAY_LEN(fns)] = {0};
    unsigned before = count_descriptors();
    int touched = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fns); i++)
        assert_int_equal(
            bounded_start(base, &limits, fns[i], &touched, on_done, &ends[i], &calls[i], NULL), 0);
    for (size_t i = 1; i < ARRAY_LEN(fns); i++)
        while (!ends[i].count)
            assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
    bounded_cancel(calls[0]);
    bounded_cancel(NULL);
    event_base_loop(base, EVLOOP_NONBLOCK);
    for (size_t i = 0; i < ARRAY_LEN(fns); i++) {
        assert_int_equal(ends[i].count, i > 0);
        assert_int_equal(ends[i].rc, -codes[i]);
        assert_true((ends[i].err.kind == DRARUN_ERR_SPEC) == (codes[i] != 0));
    }
    assert_int_equal(touched, 0);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    event_base_free(base);
}

static int exceeds(void *arg, struct drarun_error *err)
{
    (void)arg, (void)err;
    raise(SIGXCPU); /* as the kernel does */
    return 0;
}

static void on_signal(int signo)
{
    (void)signo;
}

/* Neither a handler nor a mask of ours keeps the child from ending. */
static void test_signals_of_the_caller(void **state)
{
    struct event_base *base = event_base_new();
    struct drarun_error err = {0};
    struct sigaction ours = {.sa_handler = on_signal}, old;
    sigset_t some, before, after;
    (void)state;
    sigaction(SIGXCPU, &ours, &old);
    sigemptyset(&some);
    sigaddset(&some, SIGXCPU);
    sigprocmask(SIG_BLOCK, &some, &before);
    assert_int_equal(call(base, &limits, exceeds, NULL, &err), -ETIME);
    sigprocmask(SIG_SETMASK, &before, &after);
    assert_true(sigismember(&after, SIGXCPU));
    assert_false(sigismember(&after, SIGTERM));
    sigaction(SIGXCPU, &old, NULL);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_the_loop_runs_meanwhile),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_signals_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
