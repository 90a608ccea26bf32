/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting where there is room, and where the process has no descriptor left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/acceptor.h"
#include "lib/wire/dial.h"

#define CALLERS 40

struct fixture {
    struct event_base *base;
    struct acceptor *acceptor;
    struct rlimit before;
    int callers[CALLERS]; /* connected, and in the kernel's queue */
    int accepted[CALLERS];
    int count;
    int dropped; /* of accepted, the oldest first */
    bool drops, pauses;
    int lines; /* logged */
};

static void on_log(void *arg, const struct log_line *line)
{
    struct fixture *f = arg;
    (void)line;
    f->lines++;
}

static void on_accepted(int fd, void *arg)
{
    struct fixture *f = arg;
    assert_true(f->count < CALLERS);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    f->accepted[f->count++] = fd;
    if (f->pauses)
        acceptor_pause(f->acceptor, 20);
}

static bool drop_one(void *arg)
{
    struct fixture *f = arg;
    if (!f->drops || f->dropped == f->count)
        return false;
    close_fd(&f->accepted[f->dropped++]);
    return true;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct acceptor_owner owner = {.accepted = on_accepted, .make_room = drop_one, .arg = f};
    struct drarun_error err = {0};
    char address[32];
    uint16_t port = 0;
    int fd = -1;
    getrlimit(RLIMIT_NOFILE, &f->before);
    f->base = event_base_new();
    if (listen_on("127.0.0.1:0", &fd, &port, &err) < 0)
        return -1;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    f->acceptor = acceptor_new_take(f->base, fd, &owner, &err);
    for (int i = 0; i < CALLERS; i++)
        if (dial_start(address, &f->callers[i], &err) < 0)
            return -1;
    log_divert(on_log, f);
    *state = f;
    return f->acceptor ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    log_divert(NULL, NULL);
    setrlimit(RLIMIT_NOFILE, &f->before);
    acceptor_free(f->acceptor);
    for (int i = 0; i < CALLERS; i++) {
        close_fd(&f->callers[i]);
        if (i >= f->dropped && i < f->count)
            close_fd(&f->accepted[i]);
    }
    event_base_free(f->base);
    free(f);
    return 0;
}

/* From now on so many descriptors can be opened. */
static void leave(int count)
{
    struct rlimit limit;
    int last = dup(0); /* the lowest that is free: all lower ones are taken */
    assert_true(last >= 0);
    close(last);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)last + (rlim_t)count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void run_until(struct fixture *f, int count)
{
    int64_t end = clock_ms() + 60000;
    while (f->count < count && clock_ms() < end)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->count, count);
}

static void few_in_one_turn(void **state)
{
    struct fixture *f = *state;
    event_base_loop(f->base, EVLOOP_ONCE);
    assert_in_range(f->count, 1, 16);
    run_until(f, CALLERS);
    assert_int_equal(f->lines, 0);
}

/* A level-triggered listener would wake the loop without a pause. */
static void waits_at_the_descriptor_limit(void **state)
{
    struct fixture *f = *state;
    int turns = 0;
    leave(3);
    for (int64_t end = clock_ms() + 500; clock_ms() < end; turns++)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->count, 3);
    assert_in_range(turns, 1, 30);
    assert_int_equal(f->lines, 1);
    setrlimit(RLIMIT_NOFILE, &f->before);
    run_until(f, CALLERS);
}

static void makes_room_for_newer_ones(void **state)
{
    struct fixture *f = *state;
    f->drops = true;
    leave(3);
    run_until(f, CALLERS);
    assert_int_equal(f->dropped, CALLERS - 3);
}

static void one_for_each_pause(void **state)
{
    struct fixture *f = *state;
    f->pauses = true;
    int64_t from = clock_ms();
    run_until(f, 5);
    assert_true(clock_ms() - from >= 4 * 19);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(few_in_one_turn),
        TEST(waits_at_the_descriptor_limit),
        TEST(makes_room_for_newer_ones),
        TEST(one_for_each_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
