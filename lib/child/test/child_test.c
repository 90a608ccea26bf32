/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/test/skip.h"
#include "lib/base/unconst.h"
#include "lib/child/child.h"

#define HANG_MS 60000

struct talk {
    struct event_base *base;
    struct child *child;
    char heard[256];
    int wrote;
    size_t left; /* of its output that was no line */
    bool over;
    int status, code;
    int other; /* descriptor of another process that it has started */
};

static void on_over(const struct child_end *end, const struct drarun_error *err, void *arg)
{
    struct talk *talk = arg;
    talk->over = true;
    talk->status = end->known ? end->status : -1;
    talk->code = err ? err->code : 0;
    talk->child = NULL;
    talk->left = end->out->len;
    event_base_loopbreak(talk->base);
}

static void on_line(void *arg, const char *text, size_t length)
{
    struct talk *talk = arg;
    size_t used = strlen(talk->heard);
    assert_true(used + length + 2 < sizeof talk->heard);
    memcpy(talk->heard + used, text, length);
    memcpy(talk->heard + used + length, ";", sizeof ";");
    if (length == 5 && memcmp(text, "hello", 5) == 0)
        talk->wrote = child_write(talk->child, "one\ntwo\n", 8);
}

static void talk_with(struct talk *talk, const char *script)
{
    char *const argv[] = {unconst("sh"), unconst("-c"), unconst(script), NULL};
    char *const none[] = {NULL};
    const struct child_program program = {
        .argv = argv, .env = none, .deadline_ms = HANG_MS, .line = on_line};
    *talk = (struct talk){.base = event_base_new(), .wrote = 1};
    assert_int_equal(child_start(talk->base, &program, on_over, talk, &talk->child), 0);
    event_base_dispatch(talk->base);
    event_base_free(talk->base);
    assert_true(talk->over);
}

/* Lines come while it runs, however they are cut, and it reads what it is told. */
static void lines(void **state)
{
    struct talk talk;
    (void)state;
    talk_with(&talk, "printf 'hel'; printf 'lo\\n\\n'; read a; read b; printf '%s\\n%s\\n' $b $a");
    assert_int_equal(talk.wrote, 0);
    assert_string_equal(talk.heard, "hello;;two;one;");
    assert_int_equal(talk.left, 0);
    assert_int_equal(talk.status, 0);
}

/* What is no line is not passed. */
static void unfinished(void **state)
{
    struct talk talk;
    (void)state;
    talk_with(&talk, "printf 'a\\nb'; exit 3");
    assert_string_equal(talk.heard, "a;");
    assert_int_equal(talk.left, 1);
    assert_int_equal(talk.status, 3);
}

/* It is told, and says that it does not listen any more. */
static void deaf(void **state)
{
    struct talk talk;
    (void)state;
    talk_with(&talk, "exec <&-; echo hello");
    assert_int_equal(talk.wrote, -EPIPE);
}

static void on_other(void *arg, const char *text, size_t length)
{
    struct talk *talk = arg;
    char number[16];
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    talk->other = pidfd_open((pid_t)atoi(number), 0);
}

/* Starts another one, says which, and ends. */
static void leave(struct talk *talk, const char *script, int64_t deadline_ms)
{
    char *const argv[] = {unconst("sh"), unconst("-c"), unconst(script), NULL};
    char *const none[] = {NULL};
    const struct child_program program = {
        .argv = argv, .env = none, .deadline_ms = deadline_ms, .line = on_other};
    *talk = (struct talk){.base = event_base_new(), .other = -1};
    assert_int_equal(child_start(talk->base, &program, on_over, talk, &talk->child), 0);
    event_base_dispatch(talk->base);
    event_base_free(talk->base);
    assert_true(talk->over && talk->other >= 0);
}

/* With its stdout the deadline is for it; with its stderr alone it may stay. */
static void what_it_leaves(void **state)
{
    struct talk talk;
    (void)state;
    leave(&talk, "sleep 600 & echo $!", 1000);
    assert_int_equal(talk.code, ETIMEDOUT);
    assert_int_equal(talk.status, 0); /* its own */
    assert_true(child_has_ended(talk.other, HANG_MS));
    close(talk.other);

    leave(&talk, "sleep 600 >&2 & echo $!; exit 3", HANG_MS);
    assert_int_equal(talk.code, 0);
    assert_int_equal(talk.status, 3);
    assert_false(child_has_ended(talk.other, 100));
    pidfd_send_signal(talk.other, SIGKILL, NULL, 0);
    close(talk.other);
}

static void on_pid(void *arg, const char *text, size_t length)
{
    struct talk *talk = arg;
    snprintf(talk->heard, sizeof talk->heard, "%.*s", (int)length, text);
    event_base_loopbreak(talk->base);
}

/* A tracer keeps it from ending, as a driver's call does that never returns. */
static void left_behind(void **state)
{
    char *const argv[] = {unconst("sh"), unconst("-c"), unconst("echo $$; exec sleep 600"), NULL};
    char *const none[] = {NULL};
    const struct child_program program = {
        .argv = argv, .env = none, .deadline_ms = HANG_MS, .line = on_pid};
    (void)state;
    for (int traced = 0; traced < 2; traced++) {
        struct talk talk = {.base = event_base_new()};
        assert_int_equal(child_start(talk.base, &program, on_over, &talk, &talk.child), 0);
        event_base_dispatch(talk.base);
        pid_t pid = (pid_t)atoi(talk.heard);
        assert_true(pid > 1);
        if (traced && ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) < 0)
            skip_for("ptrace(2) is not permitted here"); /* as in some sandboxes */
        int left = child_kill(talk.child);
        event_base_free(talk.base);
        assert_true((left >= 0) == traced);
        if (!traced)
            continue;
        assert_true(child_is_left(&left));
        assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
        while (child_is_left(&left))
            usleep(1000);
        assert_int_equal(left, -1);
        assert_int_equal(kill(pid, 0), -1); /* and reaped */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(unfinished),
                                       cmocka_unit_test(deaf), cmocka_unit_test(what_it_leaves),
                                       cmocka_unit_test(left_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
