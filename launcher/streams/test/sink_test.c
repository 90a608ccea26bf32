/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/streams/sink.h"

struct bed {
    struct event_base *base;
    struct sink *sink;
    int read_end, write_end;
    int broken; /* code */
    bool progressed;
};

static void on_progress(void *arg)
{
    ((struct bed *)arg)->progressed = true;
}

static void on_broken(void *arg, const struct drarun_error *err)
{
    ((struct bed *)arg)->broken = err->code;
}

static void make(struct bed *b, const int ends[2])
{
    struct sink_owner owner = {on_progress, on_broken, b};
    *b = (struct bed){.read_end = ends[0], .write_end = ends[1]};
    b->base = event_base_new();
    b->sink = sink_new(b->base, b->write_end, "test", &owner);
    assert_non_null(b->sink);
}

static void done(struct bed *b)
{
    sink_free(b->sink);
    event_base_free(b->base);
    close(b->read_end);
    close(b->write_end);
}

/* Writes far more than a pipe holds, with nobody reading at first; the flags of the shared
 * descriptor stay as they were and every byte arrives in order. */
static void slow_reader(const int ends[2])
{
    enum { PIECES = 64, PIECE = 32 * 1024 };
    struct bed b;
    static char piece[PIECE], got[PIECE];
    int flags = fcntl(ends[1], F_GETFL);
    make(&b, ends);
    for (int i = 0; i < PIECES; i++) {
        memset(piece, 'a' + i % 26, sizeof piece);
        sink_add(b.sink, piece, sizeof piece);
    }
    assert_int_equal(fcntl(ends[1], F_GETFL), flags);
    assert_true(sink_done(b.sink) < sink_added(b.sink));
    fcntl(b.read_end, F_SETFL, O_NONBLOCK);
    for (size_t total = 0; total < (size_t)PIECES * PIECE;) {
        event_base_loop(b.base, EVLOOP_NONBLOCK);
        ssize_t n = read(b.read_end, got, sizeof got);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(got[i], 'a' + (int)(total + (size_t)i) / PIECE % 26);
        total += n > 0 ? (size_t)n : 0;
    }
    assert_true(b.progressed);
    event_base_loop(b.base, EVLOOP_NONBLOCK);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    assert_int_equal(b.broken, 0);
    done(&b);
}

static void slow_reader_of_a_pipe(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    slow_reader(ends);
}

static void slow_reader_of_a_socket(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    slow_reader(ends);
}

static void reader_goes_away(void **state)
{
    int ends[2];
    struct bed b;
    static char much[1024 * 1024];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    sink_add(b.sink, much, sizeof much);
    close(ends[0]);
    b.read_end = dup(ends[1]); /* something to close */
    event_base_loop(b.base, EVLOOP_ONCE);
    assert_int_equal(b.broken, EPIPE);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    sink_add(b.sink, much, sizeof much);
    assert_int_equal(sink_done(b.sink), 2 * sizeof much);
    done(&b);
}

static void full_disk(void **state)
{
    struct bed b;
    (void)state;
    const int ends[2] = {open("/dev/null", O_RDONLY), open("/dev/full", O_WRONLY)};
    make(&b, ends);
    sink_add(b.sink, "x", 1);
    assert_int_equal(b.broken, ENOSPC);
    assert_int_equal(sink_done(b.sink), 1);
    done(&b);
}

static void discards(void **state)
{
    int ends[2];
    struct bed b;
    static char much[1024 * 1024];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    sink_add(b.sink, much, sizeof much);
    sink_discard(b.sink);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    assert_int_equal(b.broken, 0);
    done(&b);
}

/* What of it went where, however the bytes were cut. */
static void assert_copied(size_t piece, const char *text, const char *shown)
{
    struct bed b;
    int ends[2];
    char got[200] = "";
    const struct sink_copy copy = {.fd = memfd_create("copy", MFD_CLOEXEC), .hide = "#x "};
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    sink_set_copy(b.sink, &copy);
    for (size_t at = 0; at < strlen(text); at += piece)
        sink_add(b.sink, text + at, strlen(text) - at < piece ? strlen(text) - at : piece);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    sink_free(b.sink);
    b.sink = NULL;
    assert_true(read(b.read_end, got, sizeof got - 1) > 0);
    assert_string_equal(got, shown);
    memset(got, 0, sizeof got);
    assert_int_equal(pread(copy.fd, got, sizeof got - 1, 0), (ssize_t)strlen(text));
    assert_string_equal(got, text);
    close(copy.fd);
    done(&b);
}

static void copies(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 20; piece++) {
        assert_copied(piece, "a\n#x b\n#c\n", "a\n#c\n");
        assert_copied(piece, "a\n#x", "a\n#x"); /* which may have become one that is hidden */
    }
}

static void copy_goes_on_without_a_reader(void **state)
{
    static char much[1024 * 1024];
    struct bed b;
    int ends[2];
    const struct sink_copy copy = {.fd = memfd_create("copy", MFD_CLOEXEC)};
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    sink_set_copy(b.sink, &copy);
    sink_add(b.sink, much, sizeof much);
    assert_int_equal(lseek(copy.fd, 0, SEEK_END), sizeof much);
    close(b.read_end);
    b.read_end = dup(b.write_end); /* something to close */
    event_base_loop(b.base, EVLOOP_ONCE);
    sink_add(b.sink, much, sizeof much);
    assert_int_equal(lseek(copy.fd, 0, SEEK_END), 2 * sizeof much);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    close(copy.fd);
    done(&b);
}

static void copy_cannot_be_written(void **state)
{
    struct bed b;
    int ends[2];
    const struct sink_copy copy = {.fd = open("/dev/full", O_WRONLY)};
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    sink_set_copy(b.sink, &copy);
    sink_add(b.sink, "x", 1);
    assert_int_equal(b.broken, ENOSPC);
    b.broken = 0;
    sink_add(b.sink, "x", 1);
    assert_int_equal(b.broken, 0);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    close(copy.fd);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_reader_of_a_pipe),
        cmocka_unit_test(slow_reader_of_a_socket),
        cmocka_unit_test(reader_goes_away),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(discards),
        cmocka_unit_test(copies),
        cmocka_unit_test(copy_goes_on_without_a_reader),
        cmocka_unit_test(copy_cannot_be_written),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
