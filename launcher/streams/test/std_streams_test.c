/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/streams/std_streams.h"
#include "launcher/streams/test/std_pipes.h"
#include "lib/base/log.h"

struct bed {
    struct event_base *base;
    struct std_streams *streams;
    struct std_pipes pipes;
    int pauses, resumes, idles, befores, failures;
    int code; /* of the last failure */
};

static void on_full(void *arg, bool full)
{
    struct bed *b = arg;
    b->pauses += full;
    b->resumes += !full;
}

static void on_idle(void *arg)
{
    ((struct bed *)arg)->idles++;
}

static void on_before(void *arg)
{
    ((struct bed *)arg)->befores++;
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    struct bed *b = arg;
    b->failures++;
    b->code = err->code;
}

static void make(struct bed *b)
{
    const struct std_streams_owner owner = {
        .full = on_full, .before = on_before, .idle = on_idle, .failed = on_failed, .arg = b};
    b->base = event_base_new();
    b->streams = std_streams_new(b->base, NULL);
    assert_non_null(b->streams);
    std_streams_set_owner(b->streams, &owner);
}

static void done(struct bed *b)
{
    std_pipes_done(&b->pipes);
    event_base_free(b->base);
}

/* The next byte that was written for position i of a stream. */
static char byte_at(size_t i)
{
    return (char)('a' + i / 1000 % 26);
}

/* Returns how many bytes were written until the owner was told to pause. */
static size_t fill(struct bed *b, int fd)
{
    char piece[1000];
    size_t total = 0;
    for (; b->pauses == 0 && total < (1u << 24); total += sizeof piece) {
        memset(piece, byte_at(total), sizeof piece);
        std_streams_write(b->streams, fd, piece, sizeof piece);
    }
    return total;
}

/* Reads at most max bytes that are there, of a stream whose first `at` bytes were read before;
 * true: they are the right ones. */
static bool take(const struct bed *b, int fd, size_t max, size_t *at)
{
    static char got[4096];
    ssize_t n;
    while (max > 0 &&
           (n = read(b->pipes.read_ends[fd], got, max < sizeof got ? max : sizeof got)) > 0) {
        max -= (size_t)n;
        for (ssize_t i = 0; i < n; i++)
            if (got[i] != byte_at((*at)++))
                return false;
    }
    return true;
}

static void reader_that_pauses(void **state)
{
    struct bed b = {0};
    size_t at = 0;
    bool right = true, resumed_early = false;
    (void)state;
    std_pipes_begin(&b.pipes);
    std_pipes_put(&b.pipes, STDOUT_FILENO);
    make(&b);
    size_t total = fill(&b, STDOUT_FILENO);
    bool full = std_streams_is_full(b.streams);
    /* the pipe's own buffer, and what was asked for */
    size_t in_pipe = (size_t)fcntl(STDOUT_FILENO, F_GETPIPE_SZ);
    while (right && at < total) {
        size_t before = at;
        right = take(&b, STDOUT_FILENO, 8192, &at) && (at > before || b.idles == 0);
        event_base_loop(b.base, EVLOOP_NONBLOCK);
        resumed_early |= b.resumes > 0 && total - at > STD_STREAMS_RESUME + in_pipe;
    }
    bool idle = std_streams_is_idle(b.streams);
    std_streams_end(b.streams);
    done(&b);
    assert_true(full && right && idle);
    assert_false(resumed_early);
    assert_in_range(total, STD_STREAMS_FULL, STD_STREAMS_FULL + in_pipe + 1000);
    assert_int_equal(b.pauses, 1);
    assert_int_equal(b.resumes, 1);
    assert_int_equal(b.idles, 1);
    assert_int_equal(b.befores, total / 1000);
    assert_int_equal(b.failures, 0);
}

static size_t read_text(const struct bed *b, int fd, char *text, size_t size)
{
    ssize_t n = read(b->pipes.read_ends[fd], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The log is a stream of its own, and goes on. */
static void stalled_reader_is_given_up(void **state)
{
    struct bed b = {0};
    char note[200], later[200];
    (void)state;
    std_pipes_begin(&b.pipes);
    std_pipes_put(&b.pipes, STDOUT_FILENO);
    std_pipes_put(&b.pipes, STDERR_FILENO);
    make(&b);
    fill(&b, STDOUT_FILENO);
    bool before = std_streams_has_dropped(b.streams);
    std_streams_limit(b.streams, 20);
    while (!std_streams_is_idle(b.streams) && event_base_loop(b.base, EVLOOP_ONCE) == 0)
        ;
    read_text(&b, STDERR_FILENO, note, sizeof note);
    bool dropped = std_streams_has_dropped(b.streams);
    std_streams_write(b.streams, STDOUT_FILENO, "x", 1);
    bool idle = std_streams_is_idle(b.streams), full = std_streams_is_full(b.streams);
    log_note("goes on");
    std_streams_end(b.streams);
    log_note("and on");
    read_text(&b, STDERR_FILENO, later, sizeof later);
    done(&b);
    assert_true(!before && dropped && idle && !full);
    assert_string_equal(
        note, "drarun: standard output has not been read for 0.02 s: the rest of it is dropped\n");
    assert_string_equal(later, "drarun: goes on\ndrarun: and on\n");
    assert_int_equal(b.resumes, 1);
    assert_int_equal(b.idles, 1);
}

/* A process that says its last words must not wait for that reader either. */
static void stalled_standard_error(void **state)
{
    struct bed b = {0};
    char text[100];
    size_t at = 0;
    (void)state;
    std_pipes_begin(&b.pipes);
    std_pipes_put(&b.pipes, STDOUT_FILENO);
    std_pipes_put(&b.pipes, STDERR_FILENO);
    make(&b);
    fill(&b, STDERR_FILENO);
    std_streams_discard(b.streams);
    bool dropped = std_streams_has_dropped(b.streams);
    std_streams_write(b.streams, STDOUT_FILENO, "out", 3);
    alarm(60);
    for (int i = 0; i < 200; i++)
        log_error("%0500d", i);
    std_streams_end(b.streams);
    for (int i = 0; i < 200; i++)
        log_error("%0500d", i);
    alarm(0);
    log_divert(NULL, NULL);
    read_text(&b, STDOUT_FILENO, text, sizeof text);
    bool right = take(&b, STDERR_FILENO, SIZE_MAX, &at);
    done(&b);
    assert_true(dropped && right && at > 0);
    assert_string_equal(text, "out");
    assert_int_equal(b.failures, 0);
}

/* "2>&1": what waits in the queue stays ahead of what comes later on the other descriptor. */
static void both_are_one_file(void **state)
{
    struct bed b = {0};
    size_t at = 0;
    char text[100] = "";
    (void)state;
    std_pipes_begin(&b.pipes);
    std_pipes_put(&b.pipes, STDOUT_FILENO);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    make(&b);
    size_t total = fill(&b, STDOUT_FILENO);
    log_note("behind it");
    bool right = true;
    while (right && at < total) {
        right = take(&b, STDOUT_FILENO, total - at, &at);
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    }
    event_base_loop(b.base, EVLOOP_NONBLOCK);
    read_text(&b, STDOUT_FILENO, text, sizeof text);
    std_streams_end(b.streams);
    done(&b);
    assert_true(right);
    assert_string_equal(text, "drarun: behind it\n");
}

static void full_disk(void **state)
{
    struct bed b = {0};
    (void)state;
    std_pipes_begin(&b.pipes);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    dup2(fd, STDOUT_FILENO);
    close(fd);
    make(&b);
    std_streams_write(b.streams, STDOUT_FILENO, "x", 1);
    std_streams_write(b.streams, STDOUT_FILENO, "x", 1);
    bool idle = std_streams_is_idle(b.streams), dropped = std_streams_has_dropped(b.streams);
    std_streams_end(b.streams);
    done(&b);
    assert_true(idle && !dropped);
    assert_int_equal(b.failures, 1);
    assert_int_equal(b.code, ENOSPC);
}

/* Of standard output it is SIGPIPE; a closed standard error costs its lines alone. */
static void reader_that_is_gone(void **state)
{
    (void)state;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            struct bed b = {0};
            std_pipes_begin(&b.pipes);
            std_pipes_put(&b.pipes, fd);
            make(&b);
            close(b.pipes.read_ends[fd]);
            std_streams_write(b.streams, fd, "x", 1);
            std_streams_end(b.streams);
            _exit(b.failures);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (fd == STDOUT_FILENO)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Nor by what is said when SIGPIPE is no longer ignored, then or after the end. */
static void standard_error_that_is_closed_at_the_end(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            struct bed b = {0};
            std_pipes_begin(&b.pipes);
            std_pipes_put(&b.pipes, STDERR_FILENO);
            make(&b);
            if (full)
                fill(&b, STDERR_FILENO);
            close(b.pipes.read_ends[STDERR_FILENO]);
            signal(SIGPIPE, SIG_DFL);
            log_error("nobody reads this");
            std_streams_end(b.streams);
            log_error("nor that");
            _exit(b.failures);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* A process that reads late, and says by its status whether all came. */
static pid_t start_late_reader(const struct bed *b, size_t total)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    size_t at = 0;
    usleep(50000);
    fcntl(b->pipes.read_ends[STDOUT_FILENO], F_SETFL, 0);
    bool right = take(b, STDOUT_FILENO, total, &at);
    _exit(right && at == total ? 0 : 1);
}

static void end_waits_for_the_rest(void **state)
{
    struct bed b = {0};
    int status = -1;
    (void)state;
    std_pipes_begin(&b.pipes);
    std_pipes_put(&b.pipes, STDOUT_FILENO);
    make(&b);
    size_t total = fill(&b, STDOUT_FILENO);
    pid_t child = start_late_reader(&b, total);
    std_streams_end(b.streams);
    waitpid(child, &status, 0);
    done(&b);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_that_pauses),
        cmocka_unit_test(stalled_reader_is_given_up),
        cmocka_unit_test(stalled_standard_error),
        cmocka_unit_test(both_are_one_file),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(reader_that_is_gone),
        cmocka_unit_test(standard_error_that_is_closed_at_the_end),
        cmocka_unit_test(end_waits_for_the_rest),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
