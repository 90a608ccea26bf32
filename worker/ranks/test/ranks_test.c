/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes, from their start to the end of all that they left. Run as "ranks_test pattern N"
 * this program is a rank that writes N bytes of pattern_at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/proctree.h"
#include "lib/base/unconst.h"
#include "worker/ranks/ranks.h"
#include "worker/ranks/remains.h"
#include "worker/ranks/tail.h"

#define RANKS_MAX 300
#define FIRST_RANK 100

/* argv and environments from literals, which nobody writes to. */
#define WORDS(...) ((char *const *)unconst((const char *const[]){__VA_ARGS__, NULL}))

struct seen {
    int reaped, ended;
    int place; /* in the order of `ended` */
    struct rank_result result;
    char tail[TAIL_MAX];
};

struct fixture {
    struct event_base *base;
    struct ranks *ranks;
    struct seen seen[RANKS_MAX];
    struct buf out[2]; /* of all ranks, the first 64 KiB */
    size_t total[2];
    bool wrong; /* stdout was not the pattern */
    bool check_pattern;
    bool slow; /* bytes are given back by a timer */
    size_t in_flight, most_in_flight;
    size_t input_done;
    int said;
    int all_ended;
    int settled, told_when_settled;
    int places;
    bool hold;
    bool noticing;          /* what on_reaped says */
    uint32_t kill_after_ms; /* long, so that a test that waits for it is seen */
    int on_first_output;    /* a signal, or -1 to end, -2 to end at once */
    struct event *timer;
};

static char self[4096];
static char path[] = "PATH=/bin:/usr/bin", *const env[] = {path, NULL};

/* ---- a rank that writes much ---- */

/* Binary, without newline, and of no power-of-two period. */
#define PERIOD 8191u
static char pattern[PERIOD + RANKS_LINE_MAX];

static void make_pattern(void)
{
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof pattern; i++) {
        x = i % PERIOD == 0 ? 1 : x * 1664525 + 1013904223;
        pattern[i] = (char)(x >> 24);
        if (pattern[i] == '\n')
            pattern[i] = 0;
    }
}

static int write_pattern(size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t n = length - at < RANKS_LINE_MAX ? length - at : RANKS_LINE_MAX;
        if (fd_write_all(1, pattern + at % PERIOD, n) < 0)
            return 1;
        at += n;
    }
    return 0;
}

/* ---- the owner ---- */

static void give_back(evutil_socket_t fd, short what, void *arg)
{
    struct fixture *f = arg;
    (void)fd, (void)what;
    size_t bytes = f->in_flight < 300000 ? f->in_flight : 300000;
    f->in_flight -= bytes;
    ranks_output_done(f->ranks, bytes);
    struct timeval wait = {.tv_usec = 2000};
    event_add(f->timer, &wait);
}

static void act(struct fixture *f)
{
    int action = f->on_first_output;
    f->on_first_output = 0;
    if (action > 0)
        ranks_signal(f->ranks, action);
    else if (action < 0)
        ranks_end(f->ranks, action == -2);
}

static void on_output(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                      size_t length, bool partial)
{
    struct fixture *f = arg;
    size_t i = stream - 1;
    (void)partial;
    assert_true(rank >= FIRST_RANK);
    assert_true(length > 0 && length <= RANKS_LINE_MAX);
    if (i == 0 && f->check_pattern && memcmp(data, pattern + f->total[i] % PERIOD, length) != 0)
        f->wrong = true;
    if (f->out[i].len + length <= RANKS_LINE_MAX)
        buf_add(&f->out[i], data, length);
    f->total[i] += length;
    f->in_flight += length;
    if (f->in_flight > f->most_in_flight)
        f->most_in_flight = f->in_flight;
    if (!f->slow) {
        f->in_flight -= length;
        ranks_output_done(f->ranks, length);
    }
    act(f);
}

static void on_said(void *arg, void *token)
{
    struct fixture *f = arg;
    assert_ptr_equal(token, f);
    f->said++;
}

static bool on_reaped(void *arg, const struct rank_result *result)
{
    struct fixture *f = arg;
    struct seen *seen = &f->seen[result->rank - FIRST_RANK];
    assert_int_equal(seen->ended, 0);
    assert_int_equal(seen->reaped++, 0);
    return f->noticing;
}

static void on_ended(void *arg, const struct rank_result *result)
{
    struct fixture *f = arg;
    struct seen *seen = &f->seen[result->rank - FIRST_RANK];
    assert_int_equal(seen->reaped, 1);
    assert_int_equal(seen->ended++, 0);
    seen->place = f->places++;
    seen->result = *result;
    assert_true(result->stderr_tail_length <= sizeof seen->tail);
    memcpy(seen->tail, result->stderr_tail, result->stderr_tail_length);
    seen->result.stderr_tail = seen->tail;
}

static void on_all_ended(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(f->all_ended++, 0);
    assert_false(remains_any());
    event_base_loopbreak(f->base);
}

/* On a busy machine a rank may. */
static void on_stuck(void *arg, uint32_t rank, pid_t pid, size_t more)
{
    (void)arg, (void)rank, (void)pid, (void)more;
}

static void on_settled(void *arg)
{
    struct fixture *f = arg;
    f->settled++;
    f->told_when_settled = f->places;
    ranks_input(f->ranks, NULL, 0); /* who waits for that may end */
}

static void on_input_done(void *arg, size_t bytes)
{
    struct fixture *f = arg;
    f->input_done += bytes;
}

static void open_ranks(struct fixture *f, size_t count)
{
    const struct ranks_owner owner = {.output = on_output,
                                      .said = on_said,
                                      .ended = on_ended,
                                      .reaped = on_reaped,
                                      .all_ended = on_all_ended,
                                      .stuck = on_stuck,
                                      .settled = on_settled,
                                      .input_done = on_input_done,
                                      .files = room_files(false, false, 0),
                                      .hold = f->hold,
                                      .arg = f};
    struct drarun_error err = {0};
    f->ranks = ranks_new(f->base, count, f->kill_after_ms, &owner, &err);
    if (!f->ranks)
        fail_msg("%s", err.text);
}

static void start_one(struct fixture *f, uint32_t rank, char *const *argv, bool stdin_open)
{
    struct drarun_error err = {0};
    const struct rank_request request = {.rank = FIRST_RANK + rank,
                                         .argv = argv,
                                         .env = env,
                                         .stdin_open = stdin_open,
                                         .pmi_fd = -1};
    if (ranks_start(f->ranks, &request, &err) < 0)
        fail_msg("%s", err.text);
}

static void start(struct fixture *f, uint32_t count, const char *script)
{
    open_ranks(f, count);
    for (uint32_t i = 0; i < count; i++)
        start_one(f, i, WORDS("sh", "-c", script), false);
}

/* Until all have ended; returns how long that took. */
static int64_t wait_all(struct fixture *f)
{
    int64_t from = clock_ms();
    event_base_dispatch(f->base);
    assert_int_equal(f->all_ended, 1);
    assert_int_equal(ranks_running(f->ranks), 0);
    return clock_ms() - from;
}

static int64_t run(struct fixture *f, uint32_t count, const char *script)
{
    start(f, count, script);
    return wait_all(f);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->base = event_base_new();
    f->timer = evtimer_new(f->base, give_back, f);
    f->kill_after_ms = 1000000; /* longer than the alarm: a test that waits for it fails */
    alarm(100);                 /* a hang is a failure, not a wait */
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    ranks_free(f->ranks);
    event_free(f->timer);
    event_base_free(f->base);
    buf_done(&f->out[0]);
    buf_done(&f->out[1]);
    free(f);
    /* nothing outlives a test */
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* ---- how ranks end ---- */

static void exit_status_and_signals(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 5);
    start_one(f, 0, WORDS("true"), false);
    start_one(f, 1, WORDS("sh", "-c", "exit 42"), false);
    start_one(f, 2, WORDS("sh", "-c", "kill -SEGV $$"), false);
    start_one(f, 3, WORDS("sh", "-c", "kill -KILL $$"), false);
    start_one(f, 4, WORDS("sh", "-c", "exit 255"), false);
    assert_true(ranks_pid(f->ranks, FIRST_RANK + 2) > 0);
    assert_int_equal(ranks_pid(f->ranks, FIRST_RANK + 5), -1);
    assert_int_equal(ranks_running(f->ranks), 5);
    wait_all(f);
    static const int codes[] = {0, 42, 0, 0, 255}, signals[] = {0, 0, SIGSEGV, SIGKILL, 0};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(f->seen[i].ended, 1);
        assert_int_equal(f->seen[i].result.code, codes[i]);
        assert_int_equal(f->seen[i].result.signo, signals[i]);
        assert_false(f->seen[i].result.by_us);
        assert_false(f->seen[i].result.oom);
        assert_true(f->seen[i].result.ran_us > 0);
        assert_true(f->seen[i].result.max_rss_kib > 0);
    }
    assert_int_equal(ranks_pid(f->ranks, FIRST_RANK), -1);
}

static void streams_and_tail(void **state)
{
    struct fixture *f = *state;
    run(f, 1, "echo out; echo err1 >&2; printf err2 >&2; exit 3");
    assert_string_equal(f->out[0].data, "out\n");
    assert_string_equal(f->out[1].data, "err1\nerr2");
    assert_int_equal(f->seen[0].result.stderr_tail_length, 9);
    assert_memory_equal(f->seen[0].tail, "err1\nerr2", 9);
}

static void what_ranks_say_is_output(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 1);
    assert_int_equal(ranks_say(f->ranks, FIRST_RANK, RANK_STDOUT, "x", 1, f), -ESRCH);
    start_one(f, 0, WORDS("sh", "-c", "echo written"), false);
    assert_int_equal(ranks_say(f->ranks, FIRST_RANK + 1, RANK_STDOUT, "x", 1, f), -ESRCH);
    assert_int_equal(ranks_say(f->ranks, FIRST_RANK, RANK_STDERR, "said\n", 5, f), 0);
    wait_all(f);
    assert_int_equal(f->said, 1);
    assert_string_equal(f->out[0].data, "written\n");
    assert_string_equal(f->out[1].data, "said\n");
}

static void many_ranks(void **state)
{
    struct fixture *f = *state;
    run(f, 64, "echo x; exit $(($$ % 7))");
    assert_int_equal(f->total[0], 128);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(f->seen[i].ended, 1);
        assert_int_equal(f->seen[i].result.code, f->seen[i].result.pid % 7);
    }
}

static void no_ranks_at_all(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 0);
    wait_all(f);
}

static void ended_before_all_were_started(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 3);
    start_one(f, 0, WORDS("sleep", "1000"), false);
    ranks_end(f->ranks, false);
    struct drarun_error err = {0};
    const struct rank_request late = {.rank = 1, .argv = WORDS("true"), .env = env, .pmi_fd = -1};
    assert_int_equal(ranks_start(f->ranks, &late, &err), -ECANCELED);
    wait_all(f);
    assert_int_equal(f->seen[0].result.signo, SIGTERM);
    assert_true(f->seen[0].result.by_us);
}

static void more(evutil_socket_t fd, short what, void *arg)
{
    struct fixture *f = arg;
    (void)fd, (void)what;
    if (f->seen[0].ended == 0) { /* the first is to have ended before */
        struct timeval wait = {.tv_usec = 2000};
        event_add(f->timer, &wait);
        return;
    }
    assert_int_equal(f->all_ended, 0);
    assert_int_equal(ranks_add(f->ranks, 40), 0); /* the arrays move */
    for (uint32_t i = 1; i < 39; i++)
        start_one(f, i, WORDS("sh", "-c", "echo $$; exit 3"), false);
    ranks_drop(f->ranks, 2);
    ranks_release(f->ranks);
}

static void more_may_come_while_held(void **state)
{
    struct fixture *f = *state;
    struct timeval now = {0};
    f->hold = true;
    open_ranks(f, 1);
    start_one(f, 0, WORDS("true"), false);
    event_assign(f->timer, f->base, -1, 0, more, f);
    event_add(f->timer, &now);
    wait_all(f);
    for (uint32_t i = 1; i < 39; i++)
        assert_int_equal(f->seen[i].result.code, 3);
    assert_int_equal(f->seen[39].ended, 0);
    assert_true(f->total[0] > 2 * 38);
}

/* Whoever started us may have ignored SIGCHLD; then the kernel keeps no status. */
static void sigchld_was_ignored(void **state)
{
    struct fixture *f = *state;
    signal(SIGCHLD, SIG_IGN);
    run(f, 1, "exit 9");
    assert_int_equal(f->seen[0].result.code, 9);
}

/* ---- what ranks leave ---- */

static void background_child_is_ended(void **state)
{
    struct fixture *f = *state;
    run(f, 2, "sleep 1000 & echo started; exit 5");
    assert_int_equal(f->seen[0].result.code, 5);
    assert_string_equal(f->out[0].data, "started\nstarted\n");
}

static void escaped_sessions_are_ended(void **state)
{
    struct fixture *f = *state;
    /* a double fork with sessions of their own, all pipes kept, SIGTERM ignored, one stopped */
    int64_t took = run(f, 1,
                       "trap '' TERM; (setsid sh -c '(setsid sleep 1000 &) ; exec sleep 1000' &); "
                       "(setsid sh -c 'kill -STOP $$' &); sleep 0.05; echo hi");
    assert_string_equal(f->out[0].data, "hi\n");
    assert_true(took >= REMAINS_TERM_MS);
}

static void orphans_may_go_on_beside_ranks(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 2);
    start_one(f, 0, WORDS("sh", "-c", "(sleep 0.2; echo late) & exit 0"), false);
    start_one(f, 1, WORDS("sh", "-c", "sleep 1"), false);
    wait_all(f);
    assert_string_equal(f->out[0].data, "late\n"); /* and it was still its rank's output */
}

/* As tee does, of a script's `exec > >(tee log)`. */
static void leftovers_may_write_the_last_output(void **state)
{
    struct fixture *f = *state;
    run(f, 1, "(sleep 0.1; echo last) & exit 0");
    assert_int_equal(f->total[0], strlen("last\n"));
    assert_string_equal(f->out[0].data, "last\n");
}

/* Nor do they keep the job from its end. */
static void leftovers_that_write_on_are_ended(void **state)
{
    struct fixture *f = *state;
    run(f, 1, "(while :; do echo more; sleep 0.05; done) & exit 3");
    assert_int_equal(f->seen[0].result.code, 3);
}

static void leftovers_may_finish_after_sigterm(void **state)
{
    struct fixture *f = *state;
    run(f, 1,
        "f=/tmp/ranks_test.$$; (trap 'echo saved; exit' TERM; : >$f; sleep 1000 & wait) & "
        "until [ -e $f ]; do sleep 0.01; done; rm $f");
    assert_string_equal(f->out[0].data, "saved\n");
}

/* ---- being ended ---- */

static void ended_in_order(void **state)
{
    struct fixture *f = *state;
    f->on_first_output = -1;
    run(f, 3, "trap 'echo bye; exit 7' TERM; echo hi; while :; do sleep 0.05; done");
    for (size_t i = 0; i < 3; i++) {
        assert_true(f->seen[i].result.code == 7 || f->seen[i].result.signo == SIGTERM);
        assert_true(f->seen[i].result.by_us);
    }
}

static void sigkill_follows(void **state)
{
    struct fixture *f = *state;
    f->kill_after_ms = 300;
    f->on_first_output = -1;
    int64_t took = run(f, 1, "trap '' TERM; echo hi; while :; do sleep 1; done");
    assert_int_equal(f->seen[0].result.signo, SIGKILL);
    assert_true(f->seen[0].result.by_us);
    assert_false(f->seen[0].result.oom);
    assert_true(took >= 300);
}

static void stopped_ranks_end_too(void **state)
{
    struct fixture *f = *state;
    f->on_first_output = -1;
    run(f, 1, "echo hi; kill -STOP $$; sleep 1000");
    assert_int_equal(f->seen[0].result.signo, SIGTERM);
}

static void at_once_does_not_wait(void **state)
{
    struct fixture *f = *state;
    f->on_first_output = -2;
    run(f, 2, "trap '' TERM; setsid sleep 1000 & echo hi; sleep 1000");
    assert_int_equal(f->seen[0].result.signo, SIGKILL);
}

/* The wrapper dies of SIGTERM at once; its child, which writes a checkpoint, has the whole time. */
static void child_of_a_wrapper_has_its_time(void **state)
{
    struct fixture *f = *state;
    f->on_first_output = -1;
    run(f, 1,
        "sh -c 'trap \"sleep 0.25; echo saved; exit\" TERM; echo hi; while :; do sleep 0.05; done' "
        "& "
        "wait");
    assert_int_equal(f->seen[0].result.signo, SIGTERM);
    assert_string_equal(f->out[0].data, "hi\nsaved\n");
}

static void signals_are_forwarded(void **state)
{
    struct fixture *f = *state;
    f->on_first_output = SIGUSR1;
    run(f, 1, "trap 'exit 33' USR1; echo hi; sleep 1000 & wait");
    assert_int_equal(f->seen[0].result.code, 33);
    assert_false(f->seen[0].result.by_us);
}

static void some_are_signalled(void **state)
{
    struct fixture *f = *state;
    start(f, 4, "sleep 0.3");
    ranks_signal_some(f->ranks, FIRST_RANK + 1, 2, SIGINT);
    wait_all(f);
    static const int signals[] = {0, SIGINT, SIGINT, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f->seen[i].result.signo, signals[i]);
        assert_false(f->seen[i].result.by_us);
    }
}

/* ---- output ---- */

static void window_holds_back_a_fast_rank(void **state)
{
    struct fixture *f = *state;
    struct rusage before, after;
    struct timeval now = {0};
    f->slow = true;
    event_add(f->timer, &now);
    getrusage(RUSAGE_SELF, &before);
    run(f, 1, "yes 'a line of a program that prints and prints' | head -c 64000000");
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(f->total[0], 64000000);
    assert_true(f->most_in_flight <= RANKS_OUTPUT_WINDOW);
    assert_true(f->most_in_flight > RANKS_OUTPUT_WINDOW / 2);
#ifndef __SANITIZE_ADDRESS__
    assert_true(after.ru_maxrss - before.ru_maxrss < 4 * 1024);
#endif
}

static void one_line_of_100_mb(void **state)
{
    struct fixture *f = *state;
    f->check_pattern = true;
    open_ranks(f, 1);
    start_one(f, 0, WORDS(self, "pattern", "100000001"), false);
    wait_all(f);
    assert_int_equal(f->total[0], 100000001);
    assert_false(f->wrong);
}

static void nobody_reads_any_more(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 2);
    start_one(f, 0, WORDS("yes"), false);
    ranks_output_closed(f->ranks, RANK_STDOUT);
    start_one(f, 1, WORDS("yes"), false);
    wait_all(f);
    assert_int_equal(f->seen[0].result.signo, SIGPIPE);
    assert_int_equal(f->seen[1].result.signo, SIGPIPE);
}

/* ---- input ---- */

static void input_reaches_every_reader(void **state)
{
    struct fixture *f = *state;
    static char data[1000000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i % 251);
    open_ranks(f, 3);
    start_one(f, 0, WORDS("cksum"), true);
    start_one(f, 1, WORDS("sh", "-c", "sleep 0.3; exec cksum"), true);
    start_one(f, 2, WORDS("cksum"), false); /* /dev/null */
    assert_int_equal(ranks_input(f->ranks, data, 600000), 0);
    assert_true(f->input_done < 600000);
    assert_int_equal(ranks_input(f->ranks, data + 600000, sizeof data - 600000), 0);
    assert_int_equal(ranks_input(f->ranks, NULL, 0), 0);
    assert_int_equal(ranks_input(f->ranks, NULL, 0), 0);
    assert_int_equal(ranks_input(f->ranks, "x", 1), -EPIPE);
    wait_all(f);
    assert_int_equal(f->input_done, sizeof data);
    char *full = strstr(f->out[0].data, " 1000000\n");
    assert_non_null(full);
    assert_non_null(strstr(full + 1, " 1000000\n"));
    assert_non_null(strstr(f->out[0].data, "4294967295 0\n"));
}

static void closed_stdin_drops_its_share(void **state)
{
    struct fixture *f = *state;
    static char data[500000];
    open_ranks(f, 2);
    start_one(f, 0, WORDS("sh", "-c", "exec <&-; sleep 0.2"), true);
    start_one(f, 1, WORDS("sh", "-c", "head -c 10 >/dev/null; sleep 0.1"), true);
    assert_int_equal(ranks_input(f->ranks, data, sizeof data), 0);
    wait_all(f);
    assert_int_equal(f->input_done, sizeof data);
    /* with nobody left */
    assert_int_equal(ranks_input(f->ranks, data, 77), 0);
    assert_int_equal(f->input_done, sizeof data + 77);
}

/* ---- what cannot start ---- */

static void errors_name_rank_and_program(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 1);
    struct drarun_error err = {0};
    struct rank_request request = {.rank = 7, .argv = WORDS("no-such"), .env = env, .pmi_fd = -1};
    assert_int_equal(ranks_start(f->ranks, &request, &err), -ENOENT);
    assert_string_equal(err.text, "start rank 7: no program no-such in PATH");
    assert_int_equal(err.kind, DRARUN_ERR_NOT_FOUND);
    assert_int_equal(ranks_check_program(&request, &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_NOT_FOUND);
    request.argv = WORDS("/etc");
    assert_int_equal(ranks_start(f->ranks, &request, &err), -EACCES);
    assert_int_equal(err.kind, DRARUN_ERR_NOT_EXECUTABLE);
    assert_int_equal(ranks_check_program(&request, &err), -EACCES);
    request.argv = WORDS("sh");
    request.wd = "/tmp";
    assert_int_equal(ranks_check_program(&request, &err), 0);
    request.wd = "/no/such";
    assert_int_equal(ranks_check_program(&request, &err), -ENOENT);
    /* the slot can be used again, and the job goes on to its end */
    start_one(f, 0, WORDS("echo", "fine"), false);
    wait_all(f);
    assert_string_equal(f->out[0].data, "fine\n");
}

static void descriptor_limit_is_named(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, low = {40, 40};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low.rlim_max = before.rlim_max;
    open_ranks(f, 100);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct drarun_error err = {0};
    int rc = 0;
    uint32_t i;
    for (i = 0; rc == 0 && i < 100; i++) {
        const struct rank_request request = {
            .rank = FIRST_RANK + i, .argv = WORDS("sleep", "1000"), .env = env, .pmi_fd = -1};
        rc = ranks_start(f->ranks, &request, &err);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, -EMFILE);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_non_null(strstr(err.text, "ulimit -n) is 40, 100 ranks need 224"));
    ranks_end(f->ranks, true);
    wait_all(f);
    assert_int_equal(f->seen[0].result.signo, SIGKILL);
}

static void soft_limit_is_raised_for_us_only(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 50;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    run(f, 40, "ulimit -n; sleep 0.2");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f->total[0], 40 * strlen("50\n"));
    assert_memory_equal(f->out[0].data, "50\n", 3);
}

/* Whatever the order of their numbers. */
static void each_is_found(void **state)
{
    static const uint32_t orders[][5] = {{1, 2, 5, 7, 30}, {7, 1, 30, 5, 2}};
    for (size_t k = 0; k < ARRAY_LEN(orders); k++) {
        struct fixture *f = *state;
        struct rank_result result;
        uint32_t found = 0;
        bool runs = false;
        open_ranks(f, ARRAY_LEN(orders[k]));
        assert_false(ranks_find(f->ranks, FIRST_RANK + 1, &result, &runs));
        for (size_t i = 0; i < ARRAY_LEN(orders[k]); i++)
            start_one(f, orders[k][i], WORDS("sleep", "1000"), false);
        for (uint32_t number = FIRST_RANK; number < FIRST_RANK + 40; number++) {
            bool is = ranks_find(f->ranks, number, &result, &runs);
            assert_int_equal(ranks_pid(f->ranks, number), is ? result.pid : -1);
            assert_true(!is || (runs && result.rank == number));
            found += is;
        }
        assert_int_equal(found, ARRAY_LEN(orders[k]));
        ranks_end(f->ranks, true);
        wait_all(f);
        assert_true(ranks_find(f->ranks, FIRST_RANK + 30, &result, &runs) && !runs);
        assert_int_equal(ranks_pid(f->ranks, FIRST_RANK + 30), -1);
        tear_down(state);
        set_up(state);
    }
}

/* Its fellow fails of it and is reaped first. */
static void sign_of_an_end_decides_the_order(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 3);
    start_one(f, 0, WORDS("sh", "-c", "exit 3"), false);
    start_one(f, 1, WORDS("sh", "-c", "sleep 0.3; kill -9 $$"), false);
    start_one(f, 2, WORDS("sh", "-c", "sleep 0.1"), false);
    ranks_dying(f->ranks, FIRST_RANK + 1);
    ranks_dying(f->ranks, FIRST_RANK + 1); /* twice is once */
    assert_true(ranks_any_dying(f->ranks, FIRST_RANK));
    assert_false(ranks_any_dying(f->ranks, FIRST_RANK + 1));
    int64_t took = wait_all(f);
    assert_int_equal(f->seen[1].place, 0);
    assert_int_equal(f->seen[0].place + f->seen[2].place, 1 + 2);
    assert_true(took >= 200);
}

/* A connection may be closed by a program that lives on: nobody waits for it forever. */
static void sign_of_no_end(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 2);
    start_one(f, 0, WORDS("sleep", "1000"), false);
    start_one(f, 1, WORDS("true"), false);
    ranks_dying(f->ranks, FIRST_RANK);
    while (!f->seen[1].ended)
        event_base_loop(f->base, EVLOOP_ONCE);
    ranks_end(f->ranks, true);
    wait_all(f);
    assert_int_equal(f->seen[1].place, 0);
    assert_int_equal(f->seen[0].place, 1);
}

/* The server has not said yet in which order connections broke. */
static void told_when_the_server_has_noticed(void **state)
{
    struct fixture *f = *state;
    f->noticing = true;
    open_ranks(f, 2);
    start_one(f, 0, WORDS("sh", "-c", "exit 3"), false);
    start_one(f, 1, WORDS("sh", "-c", "exit 4"), false);
    for (int i = 0; i < 500 && (!f->seen[0].reaped || !f->seen[1].reaped); i++) {
        usleep(1000);
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(f->places, 0);
    ranks_dying(f->ranks, FIRST_RANK + 1);
    wait_all(f); /* the other one is told in the end though nobody noticed */
    assert_int_equal(f->seen[1].place, 0);
    assert_int_equal(f->seen[0].place, 1);
}

/* What ended before the question is told before its answer, though nobody has read SIGCHLD yet. */
static void settled_after_what_had_ended(void **state)
{
    struct fixture *f = *state;
    siginfo_t info;
    f->noticing = true; /* of a server that then says nothing */
    open_ranks(f, 3);
    start_one(f, 0, WORDS("sh", "-c", "exit 3"), false);
    start_one(f, 1, WORDS("cat"), true);
    start_one(f, 2, WORDS("sh", "-c", "exit 4"), false);
    for (uint32_t i = 0; i < 3; i += 2)
        assert_int_equal(
            waitid(P_PID, (id_t)ranks_pid(f->ranks, FIRST_RANK + i), &info, WEXITED | WNOWAIT), 0);
    ranks_settle(f->ranks);
    wait_all(f);
    assert_int_equal(f->settled, 1);
    assert_int_equal(f->told_when_settled, 2);
    assert_int_equal(f->seen[1].place, 2);
}

/* The main thread of rank 0 has ended, which looks like its end, and another one goes on. */
static void settled_though_a_thread_goes_on(void **state)
{
    struct fixture *f = *state;
    open_ranks(f, 1);
    start_one(f, 0, WORDS(self, "thread"), true);
    while (!proctree_is_exiting(ranks_pid(f->ranks, FIRST_RANK)))
        usleep(1000);
    ranks_settle(f->ranks);
    wait_all(f);
    assert_int_equal(f->settled, 1);
    assert_int_equal(f->told_when_settled, 0);
    assert_int_equal(f->seen[0].result.code, 7);
}

static void freed_while_running(void **state)
{
    struct fixture *f = *state;
    start(f, 3, "setsid sleep 1000 & echo hi; sleep 1000");
    event_base_loop(f->base, EVLOOP_ONCE);
    ranks_free(f->ranks);
    f->ranks = NULL;
    int status;
    while (waitpid(-1, &status, 0) > 0)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void *go_on(void *arg)
{
    char byte;
    (void)arg;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    exit(7);
}

static void leave_a_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, go_on, NULL), 0);
    pthread_exit(NULL);
}

int main(int argc, char **argv)
{
    make_pattern();
    if (argc == 3 && strcmp(argv[1], "pattern") == 0)
        return write_pattern(strtoul(argv[2], NULL, 10));
    if (argc == 2 && strcmp(argv[1], "thread") == 0)
        leave_a_thread();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(exit_status_and_signals),
        TEST(streams_and_tail),
        TEST(what_ranks_say_is_output),
        TEST(many_ranks),
        TEST(no_ranks_at_all),
        TEST(ended_before_all_were_started),
        TEST(more_may_come_while_held),
        TEST(sigchld_was_ignored),
        TEST(background_child_is_ended),
        TEST(escaped_sessions_are_ended),
        TEST(orphans_may_go_on_beside_ranks),
        TEST(leftovers_may_write_the_last_output),
        TEST(leftovers_that_write_on_are_ended),
        TEST(leftovers_may_finish_after_sigterm),
        TEST(ended_in_order),
        TEST(sigkill_follows),
        TEST(stopped_ranks_end_too),
        TEST(at_once_does_not_wait),
        TEST(child_of_a_wrapper_has_its_time),
        TEST(signals_are_forwarded),
        TEST(some_are_signalled),
        TEST(window_holds_back_a_fast_rank),
        TEST(one_line_of_100_mb),
        TEST(nobody_reads_any_more),
        TEST(input_reaches_every_reader),
        TEST(closed_stdin_drops_its_share),
        TEST(errors_name_rank_and_program),
        TEST(descriptor_limit_is_named),
        TEST(soft_limit_is_raised_for_us_only),
        TEST(each_is_found),
        TEST(sign_of_an_end_decides_the_order),
        TEST(sign_of_no_end),
        TEST(told_when_the_server_has_noticed),
        TEST(settled_after_what_had_ended),
        TEST(settled_though_a_thread_goes_on),
        TEST(freed_while_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
