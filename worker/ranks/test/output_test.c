/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in a pipe to lines: the test writes where a rank would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "worker/ranks/output.h"
#include "worker/ranks/tail.h"

#define SLOTS 3
#define REQUESTS 4096

struct fixture {
    struct event_base *base;
    struct rank_output *out;
    int fd[SLOTS][2];
    struct buf log;   /* "RANK.STREAM:text|" or, for partial pieces, "RANK.STREAM~text|" */
    bool keep;        /* the window's bytes are not given back */
    size_t in_flight; /* of those */
    size_t longest, total;
    size_t of_slot[SLOTS];
    size_t partial; /* pieces */
    int closed, said;
    char request[REQUESTS]; /* their addresses stand for texts' requests */
    size_t requests;
    size_t total_said; /* total at the last one */
};

static void on_output(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                      size_t length, bool partial)
{
    struct fixture *f = arg;
    const char *text = data;
    assert_true(length > 0 && length <= RANKS_LINE_MAX);
    assert_int_equal(partial, text[length - 1] != '\n');
    f->total += length;
    f->of_slot[rank - 10] += length;
    f->partial += partial;
    f->longest = length > f->longest ? length : f->longest;
    f->in_flight += length;
    assert_true(f->in_flight <= RANKS_OUTPUT_WINDOW);
    if (f->log.len < 4096) {
        buf_printf(&f->log, "%u.%d%c", (unsigned)rank, stream, partial ? '~' : ':');
        buf_add(&f->log, data, length);
        buf_add_str(&f->log, "|");
    }
    if (f->keep)
        return;
    f->in_flight -= length;
    rank_output_done(f->out, length);
}

static void on_closed(void *arg)
{
    struct fixture *f = arg;
    f->closed++;
}

static void on_said(void *arg, void *token)
{
    struct fixture *f = arg;
    assert_in_range((uintptr_t)token, (uintptr_t)f->request,
                    (uintptr_t)f->request + f->requests - 1);
    f->said++;
    f->total_said = f->total;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct rank_output_owner owner = {
        .output = on_output, .closed = on_closed, .said = on_said, .arg = f};
    f->base = event_base_new();
    f->out = rank_output_new(f->base, SLOTS, &owner, NULL);
    for (size_t i = 0; i < SLOTS; i++) {
        assert_int_equal(rank_output_open(f->out, i, 10 + (uint32_t)i, f->fd[i]), 0);
        assert_int_equal(fcntl(f->fd[i][0], F_GETFL) & O_NONBLOCK, 0); /* the rank's end blocks */
    }
    *state = f;
    return f->out ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SLOTS; i++) {
        close_fd(&f->fd[i][0]);
        close_fd(&f->fd[i][1]);
    }
    rank_output_free(f->out);
    event_base_free(f->base);
    buf_done(&f->log);
    free(f);
    return 0;
}

static void say(int fd, const char *text)
{
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* What is ready now. */
static void turn(struct fixture *f)
{
    event_base_loop(f->base, EVLOOP_NONBLOCK);
}

static void turn_for(struct fixture *f, int ms)
{
    struct timeval wait = timeval_from_ms(ms);
    event_base_loopexit(f->base, &wait);
    event_base_dispatch(f->base);
}

static void expect(struct fixture *f, const char *log)
{
    assert_string_equal(f->log.data ? f->log.data : "", log);
    buf_reset(&f->log);
}

static void lines_are_whole(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "one\ntwo\nthr");
    turn(f);
    expect(f, "10.1:one\ntwo\n|");
    say(f->fd[1][1], "other\n");
    say(f->fd[0][0], "ee\nfour\nfi");
    turn(f);
    assert_non_null(strstr(f->log.data, "10.1:three\n|10.1:four\n|"));
    assert_non_null(strstr(f->log.data, "11.2:other\n|"));
    buf_reset(&f->log);
    say(f->fd[0][0], "\n\n");
    turn(f);
    expect(f, "10.1:fi\n|10.1:\n|");
}

static void last_line_without_newline(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "a\nend");
    close_fd(&f->fd[0][0]);
    turn(f);
    turn(f);
    expect(f, "10.1:a\n|10.1~end|");
    assert_false(rank_output_finished(f->out, 0));
    close_fd(&f->fd[0][1]);
    turn(f);
    assert_true(rank_output_finished(f->out, 0));
    assert_int_equal(f->closed, 2);
}

static void silence_passes_a_prompt_on(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "login: ");
    turn(f);
    expect(f, "");
    turn_for(f, 120);
    expect(f, "10.1~login: |");
    say(f->fd[0][0], "root\n");
    turn(f);
    expect(f, "10.1:root\n|");
}

static void growing_line_is_not_silent(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 20; i++) {
        say(f->fd[0][0], ".");
        turn_for(f, 10);
    }
    say(f->fd[0][0], "\n");
    turn(f);
    assert_int_equal(f->total, 21);
    /* one piece, or a few where this machine itself was silent for long */
    assert_true(f->log.len < 21 + 6 * strlen("10.1~|"));
}

/* Lines of every length around the limit, written in awkward pieces, come out byte for byte. */
static void long_lines_come_in_pieces(void **state)
{
    struct fixture *f = *state;
    static const size_t lengths[] = {
        1, RANKS_LINE_MAX - 1, RANKS_LINE_MAX, RANKS_LINE_MAX + 1, 3 * RANKS_LINE_MAX, 200000};
    static char data[200000];
    size_t sent = 0;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        memset(data, 'x', lengths[i]);
        data[lengths[i] - 1] = '\n';
        for (size_t at = 0; at < lengths[i];) {
            size_t piece = (at * 7 + 4093) % 40000 + 1;
            piece = piece < lengths[i] - at ? piece : lengths[i] - at;
            assert_int_equal(fd_write_all(f->fd[0][0], data + at, piece), 0);
            turn(f);
            at += piece;
        }
        sent += lengths[i];
        turn(f);
        assert_int_equal(f->total, sent);
    }
    assert_true(f->longest <= RANKS_LINE_MAX);
}

static void line_of_the_limit_is_whole(void **state)
{
    struct fixture *f = *state;
    static char line[RANKS_LINE_MAX];
    memset(line, 'y', sizeof line);
    line[sizeof line - 1] = '\n';
    fd_write_all(f->fd[0][0], line, 10);
    turn(f);
    fd_write_all(f->fd[0][0], line + 10, sizeof line - 10);
    turn(f);
    turn(f);
    assert_int_equal(f->longest, sizeof line);
    assert_int_equal(f->log.len, sizeof line + strlen("10.1:|"));
}

static void full_window_stops_reading(void **state)
{
    struct fixture *f = *state;
    static char line[4096];
    memset(line, 'z', sizeof line);
    line[sizeof line - 1] = '\n';
    f->keep = true;
    for (size_t i = 0; i < SLOTS; i++)
        fcntl(f->fd[i][0], F_SETFL, O_NONBLOCK);
    size_t sent = 0, before;
    do {
        before = sent;
        for (size_t i = 0; i < SLOTS; i++)
            while (write(f->fd[i][0], line, sizeof line) > 0)
                sent += sizeof line;
        turn(f);
    } while (sent > before);
    assert_true(f->total > RANKS_OUTPUT_WINDOW / 2 && f->total <= RANKS_OUTPUT_WINDOW);
    assert_true(sent > f->total); /* the rest waits in pipes */
    size_t stopped = f->total;
    turn_for(f, 100);
    assert_int_equal(f->total, stopped);
    /* and goes on when there is room, EOF included */
    for (size_t i = 0; i < SLOTS; i++)
        close_fd(&f->fd[i][0]);
    while (f->in_flight > 0) {
        size_t bytes = f->in_flight < 50000 ? f->in_flight : 50000;
        f->in_flight -= bytes;
        rank_output_done(f->out, bytes);
        turn(f);
    }
    turn(f);
    assert_int_equal(f->total, sent);
}

/* What is held when the window is full is not lost at EOF. */
static void held_lines_wait_for_the_window(void **state)
{
    struct fixture *f = *state;
    static char data[60000];
    memset(data, 'h', sizeof data);
    for (size_t i = 0; i < SLOTS; i++)
        fd_write_all(f->fd[i][0], data, sizeof data);
    turn(f);
    assert_int_equal(f->total, 0);
    f->keep = true;
    size_t sent = SLOTS * sizeof data;
    while (f->total == 0 || f->in_flight + 2 * RANKS_LINE_MAX <= RANKS_OUTPUT_WINDOW) {
        data[sizeof data - 1] = '\n';
        fd_write_all(f->fd[0][1], data, sizeof data);
        sent += sizeof data;
        turn(f);
    }
    for (size_t i = 0; i < SLOTS; i++)
        close_fd(&f->fd[i][0]);
    close_fd(&f->fd[1][1]);
    turn_for(f, 80);
    assert_true(f->total < sent);
    assert_false(rank_output_finished(f->out, 1));
    f->keep = false;
    rank_output_done(f->out, f->in_flight);
    f->in_flight = 0;
    turn_for(f, 80);
    assert_int_equal(f->total, sent);
    assert_true(rank_output_finished(f->out, 1));
}

/* Writes whole lines until neither the window nor the pipe takes more; nothing is given back. */
static size_t fill_window(struct fixture *f, int fd)
{
    static char line[4096];
    size_t sent = 0, before;
    memset(line, 'w', sizeof line);
    line[sizeof line - 1] = '\n';
    f->keep = true;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    do {
        before = sent;
        while (write(fd, line, sizeof line) > 0)
            sent += sizeof line;
        turn(f);
    } while (sent > before);
    return sent;
}

static void turn_until(struct fixture *f, size_t total)
{
    int64_t deadline_us = clock_us() + 20000000;
    while (f->total < total && clock_us() < deadline_us)
        turn_for(f, 5);
    assert_true(f->total >= total);
}

static void give_all_back(struct fixture *f)
{
    size_t bytes = f->in_flight;
    f->keep = false;
    f->in_flight = 0;
    rank_output_done(f->out, bytes);
}

/* A rank whose pipe is not read is not silent: its line waits for the room. */
static void a_full_window_breaks_no_line(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "first half,");
    turn(f);
    size_t sent = fill_window(f, f->fd[1][0]);
    say(f->fd[0][0], " second half\n");
    turn_for(f, 2 * RANK_OUTPUT_SILENCE_MS);
    give_all_back(f);
    turn_until(f, sent + strlen("first half, second half\n"));
    assert_int_equal(f->partial, 0);
}

/* The launcher gives nothing back while it waits for the rest of a line. */
static void an_open_line_has_room(void **state)
{
    struct fixture *f = *state;
    static char more[100000];
    say(f->fd[0][0], "prompt");
    turn_until(f, strlen("prompt"));
    expect(f, "10.1~prompt|");
    size_t sent = fill_window(f, f->fd[1][0]);
    assert_true(f->total < sent);
    size_t stopped = f->total;
    say(f->fd[0][0], ", answer");
    turn_until(f, stopped + strlen(", answer"));
    say(f->fd[0][0], " and end\n");
    turn_until(f, stopped + strlen(", answer and end\n"));
    give_all_back(f);
    turn_until(f, sent + strlen("prompt, answer and end\n"));
    assert_int_equal(f->total, sent + strlen("prompt, answer and end\n"));
    /* a long line is one, too */
    memset(more, 'm', sizeof more);
    f->keep = true;
    fcntl(f->fd[0][0], F_SETFL, O_NONBLOCK);
    ssize_t n = write(f->fd[0][0], more, sizeof more);
    turn(f);
    sent = f->total + fill_window(f, f->fd[1][0]);
    assert_true(f->total < sent);
    stopped = f->total;
    while (n > 0 && (n = write(f->fd[0][0], more, 30000)) > 0)
        turn(f);
    assert_true(f->total >= stopped + 30000);
}

/* The launcher waits for one line after the other, and no longer for one of a silent rank. */
static void a_silent_rank_leaves_the_room_to_the_next_line(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "prompt");
    say(f->fd[1][0], "half");
    turn_until(f, strlen("prompthalf"));
    fill_window(f, f->fd[2][0]);
    size_t stopped = f->total;
    say(f->fd[1][0], "...");
    turn_until(f, stopped + strlen("..."));
}

static void nobody_reads(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "half a li");
    turn(f);
    rank_output_drop(f->out, (enum rank_stream)0);
    rank_output_drop(f->out, (enum rank_stream)77);
    rank_output_drop(f->out, RANK_STDOUT);
    assert_int_equal(write(f->fd[0][0], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    turn_for(f, 80);
    expect(f, "");
    say(f->fd[0][1], "stderr lives\n");
    turn(f);
    expect(f, "10.2:stderr lives\n|");
}

static void given_up_pipes_are_emptied(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "last words");
    rank_output_give_up(f->out);
    assert_true(rank_output_finished(f->out, 1));
    say(f->fd[0][0], " and more"); /* one who escaped goes on */
    turn(f);
    expect(f, "10.1~last words|");
    assert_true(rank_output_finished(f->out, 0));
}

static void byte_by_byte(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(write(f->fd[0][0], i % 100 == 99 ? "\n" : "b", 1), 1);
        turn(f);
    }
    assert_int_equal(f->total, 20000);
    assert_int_equal(f->longest, 100);
}

static void stderr_has_a_tail(void **state)
{
    struct fixture *f = *state;
    size_t length;
    rank_output_stderr_tail(f->out, 0, &length);
    assert_int_equal(length, 0);
    say(f->fd[0][1], "first\nsecond");
    say(f->fd[0][0], "stdout");
    turn(f);
    const char *tail = rank_output_stderr_tail(f->out, 0, &length);
    assert_int_equal(length, 12);
    assert_memory_equal(tail, "first\nsecond", 12);
    for (int i = 0; i < 1000; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %d\n", i);
        say(f->fd[0][1], line);
        turn(f);
    }
    tail = rank_output_stderr_tail(f->out, 0, &length);
    assert_true(length <= TAIL_MAX && length > TAIL_MAX - 16);
    assert_memory_equal(tail, "line ", 5); /* cut between lines */
    assert_memory_equal(tail + length - 9, "line 999\n", 9);
}

/* ---- texts, which come from a server ---- */

/* A request of its own. */
static int tell_bytes(struct fixture *f, size_t slot, enum rank_stream stream, const char *text,
                      size_t length)
{
    assert_true(f->requests < REQUESTS);
    return rank_output_say(f->out, slot, stream, text, length, &f->request[f->requests++]);
}

static void tell(struct fixture *f, size_t slot, enum rank_stream stream, const char *text)
{
    assert_int_equal(tell_bytes(f, slot, stream, text, strlen(text)), 0);
}

static void a_text_is_output(void **state)
{
    struct fixture *f = *state;
    tell(f, 0, RANK_STDOUT, "one\n");
    assert_int_equal(f->said, 1);
    tell(f, 1, RANK_STDERR, "two\nthree\n");
    expect(f, "10.1:one\n|11.2:two\nthree\n|");
    tell(f, 0, RANK_STDOUT, "");
    assert_int_equal(f->said, 3);
    tell(f, 0, RANK_STDOUT, "no");
    tell(f, 0, RANK_STDOUT, " line\nend");
    turn(f);
    expect(f, "10.1~no|10.1: line\n|10.1~end|");
    assert_int_equal(f->said, 5);
}

static void a_text_follows_what_was_written(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "one\n");
    tell(f, 0, RANK_STDOUT, "two\n");
    expect(f, "");
    say(f->fd[0][0], "three\n");
    turn(f);
    expect(f, "10.1:one\nthree\n|10.1:two\n|"); /* by another thread of the rank */
    assert_int_equal(f->said, 1);
}

static void a_text_goes_into_no_line(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "first half,");
    turn(f);
    tell(f, 0, RANK_STDOUT, "text\n");
    expect(f, "10.1:text\n|");
    say(f->fd[0][0], " second half\n");
    turn(f);
    expect(f, "10.1:first half, second half\n|");
    /* and one whose start was passed on is waited for */
    say(f->fd[0][0], "prompt");
    turn_until(f, f->total + strlen("prompt"));
    buf_reset(&f->log);
    tell(f, 0, RANK_STDOUT, "text\n");
    tell(f, 0, RANK_STDOUT, "more\n");
    turn(f);
    expect(f, "");
    say(f->fd[0][0], ", answer\n");
    turn_until(f, f->total + strlen(", answer\ntext\nmore\n"));
    expect(f, "10.1:, answer\n|10.1:text\n|10.1:more\n|");
}

static void a_text_breaks_a_line_that_does_not_end(void **state)
{
    struct fixture *f = *state;
    say(f->fd[0][0], "prompt");
    turn_until(f, f->total + strlen("prompt"));
    buf_reset(&f->log);
    int64_t start_us = clock_us();
    tell(f, 0, RANK_STDOUT, "text\n");
    tell(f, 0, RANK_STDOUT, "next\n"); /* then it is broken already */
    turn_until(f, f->total + strlen("text\nnext\n"));
    assert_true(clock_us() - start_us > 500000);
    expect(f, "10.1:text\n|10.1:next\n|");
    /* neither does one that grows and grows */
    tell(f, 0, RANK_STDOUT, "bar:");
    say(f->fd[0][0], "...");
    turn_until(f, f->total + strlen("..."));
    tell(f, 0, RANK_STDOUT, "text\n");
    while (f->said < 4) {
        say(f->fd[0][0], ".");
        turn_for(f, 10);
    }
    assert_true(clock_us() - start_us < 20000000);
}

/* Who waits for the answer does not end its line before. */
static void a_rank_that_waits_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        say(f->fd[0][0], "step ");
        turn_until(f, f->total + strlen("step "));
        int64_t start_us = clock_us();
        tell(f, 0, RANK_STDOUT, "text\n");
        turn_until(f, f->total + strlen("text\n"));
        int64_t took_us = clock_us() - start_us;
        assert_true(took_us >= RANK_OUTPUT_SILENCE_MS * 1000);
        least_us = took_us < least_us ? took_us : least_us;
    }
    assert_true(least_us < 500000);
}

static void a_long_line_of_a_text_is_whole(void **state)
{
    struct fixture *f = *state;
    static char text[3 * RANKS_LINE_MAX + 10];
    memset(text, 't', sizeof text);
    text[sizeof text - 1] = '\n';
    assert_int_equal(tell_bytes(f, 0, RANK_STDOUT, text, sizeof text), 0);
    assert_int_equal(f->total, RANKS_LINE_MAX);
    say(f->fd[0][0], "other\n");
    int64_t deadline_us = clock_us() + 20000000;
    while (f->said == 0 && clock_us() < deadline_us)
        turn_for(f, 5);
    assert_int_equal(f->said, 1);
    assert_int_equal(f->total_said, sizeof text);
    turn_until(f, sizeof text + strlen("other\n"));
}

/* Lines of 100 bytes. */
static void fill_lines(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = i % 100 == 99 || i == size - 1 ? '\n' : 'l';
}

static void texts_wait_for_room(void **state)
{
    struct fixture *f = *state;
    static char text[RANKS_TEXT_MAX + 1000];
    fill_lines(text, sizeof text);
    size_t sent = fill_window(f, f->fd[1][0]);
    assert_int_equal(tell_bytes(f, 0, RANK_STDOUT, text, sizeof text), 0); /* any length */
    assert_int_equal(tell_bytes(f, 0, RANK_STDOUT, "x\n", 2), -EDQUOT);
    tell(f, 0, RANK_STDERR, "x\n");
    size_t small = 0;
    while (tell_bytes(f, 1, RANK_STDOUT, "y\n", 2) == 0)
        small++;
    assert_in_range(small, 500, RANKS_TEXT_MAX / 1024);
    turn_for(f, 20);
    assert_int_equal(f->said, 0);
    while (f->said < (int)small + 2) {
        size_t bytes = f->in_flight < 60000 ? f->in_flight : 60000;
        f->in_flight -= bytes;
        rank_output_done(f->out, bytes);
        turn_for(f, 1);
    }
    turn_until(f, sent + sizeof text + 2 + 2 * small);
    assert_int_equal(f->of_slot[0], sizeof text + 2);
    assert_int_equal(f->partial, 0);
    tell(f, 0, RANK_STDOUT, "again\n");
}

static void a_request_is_taken_as_a_whole(void **state)
{
    struct fixture *f = *state;
    static char text[RANKS_TEXT_MAX / 2];
    char *request = &f->request[f->requests++];
    fill_lines(text, sizeof text);
    size_t sent = fill_window(f, f->fd[1][0]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rank_output_say(f->out, 0, RANK_STDOUT, text, sizeof text, request), 0);
    assert_int_equal(tell_bytes(f, 0, RANK_STDOUT, "x\n", 2), -EDQUOT);
    assert_int_equal(f->said, 0);
    give_all_back(f);
    turn_until(f, sent + 3 * sizeof text);
    assert_int_equal(f->said, 3);
}

static void pipes_and_texts_take_turns(void **state)
{
    struct fixture *f = *state;
    static char text[RANKS_TEXT_MAX];
    const size_t step = RANKS_LINE_MAX;
    fill_lines(text, sizeof text);
    fill_window(f, f->fd[1][0]);
    assert_int_equal(tell_bytes(f, 0, RANK_STDOUT, text, sizeof text), 0);
    size_t before = f->of_slot[1];
    for (int i = 0; i < 12; i++) {
        f->in_flight -= step;
        rank_output_done(f->out, step);
        turn(f);
        turn(f);
        while (write(f->fd[1][0], text, 4000) > 0)
            continue;
    }
    assert_true(f->of_slot[0] > 3 * step);
    assert_true(f->of_slot[1] - before > 3 * step);
    give_all_back(f);
    turn_until(f, f->total + 1);
}

static void an_end_waits_for_its_texts(void **state)
{
    struct fixture *f = *state;
    size_t sent = fill_window(f, f->fd[1][0]);
    tell(f, 0, RANK_STDOUT, "last");
    tell(f, 0, RANK_STDERR, "words\n");
    close_fd(&f->fd[0][0]);
    close_fd(&f->fd[0][1]);
    rank_output_give_up(f->out);
    turn_for(f, 20);
    assert_false(rank_output_finished(f->out, 0));
    int closed = f->closed;
    give_all_back(f);
    turn_until(f, sent + strlen("lastwords\n"));
    assert_true(rank_output_finished(f->out, 0));
    assert_true(f->closed > closed);
    tell(f, 0, RANK_STDERR, "of a child\n"); /* that has outlived it */
    assert_int_equal(f->said, 3);
}

static void texts_end_with_their_reader(void **state)
{
    struct fixture *f = *state;
    fill_window(f, f->fd[1][1]);
    tell(f, 0, RANK_STDOUT, "lost\n");
    tell(f, 0, RANK_STDERR, "kept\n");
    assert_int_equal(f->said, 0);
    rank_output_drop(f->out, RANK_STDOUT);
    assert_int_equal(f->said, 1);
    tell(f, 0, RANK_STDOUT, "lost, too\n");
    assert_int_equal(f->said, 2);
    assert_int_equal(f->of_slot[0], 0);
    rank_output_free(f->out);
    f->out = NULL;
    assert_int_equal(f->said, 3);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(lines_are_whole),
        TEST(last_line_without_newline),
        TEST(silence_passes_a_prompt_on),
        TEST(growing_line_is_not_silent),
        TEST(long_lines_come_in_pieces),
        TEST(line_of_the_limit_is_whole),
        TEST(full_window_stops_reading),
        TEST(held_lines_wait_for_the_window),
        TEST(a_full_window_breaks_no_line),
        TEST(an_open_line_has_room),
        TEST(a_silent_rank_leaves_the_room_to_the_next_line),
        TEST(nobody_reads),
        TEST(given_up_pipes_are_emptied),
        TEST(byte_by_byte),
        TEST(stderr_has_a_tail),
        TEST(a_text_is_output),
        TEST(a_text_follows_what_was_written),
        TEST(a_text_goes_into_no_line),
        TEST(a_text_breaks_a_line_that_does_not_end),
        TEST(a_rank_that_waits_is_not_waited_for),
        TEST(a_long_line_of_a_text_is_whole),
        TEST(texts_wait_for_room),
        TEST(a_request_is_taken_as_a_whole),
        TEST(pipes_and_texts_take_turns),
        TEST(an_end_waits_for_its_texts),
        TEST(texts_end_with_their_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
