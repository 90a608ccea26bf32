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
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/streams/sink.h"

static int failing = -1; /* each write to it is an I/O error */

/* NOLINTBEGIN: names that the linker makes */
ssize_t __real_write(int fd, const void *data, size_t length);
/* not hidden: where libraries are shared, they refer to it, too */
__attribute__((visibility("default"))) ssize_t __wrap_write(int fd, const void *data,
                                                            size_t length);
ssize_t __wrap_write(int fd, const void *data, size_t length)
{
    if (fd >= 0 && fd == failing) {
        errno = EIO;
        return -1;
    }
    return __real_write(fd, data, length);
}
/* NOLINTEND */

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
    uint64_t written = sink_written(b.sink);
    assert_int_equal(written, sink_done(b.sink));
    assert_in_range(written, 1, sizeof much - 1);
    sink_discard(b.sink);
    sink_add(b.sink, much, sizeof much);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    assert_int_equal(sink_written(b.sink), written);
    assert_int_equal(b.broken, 0);
    done(&b);
}

/* Shows all but "#", and a full stop at the end. */
struct reading {
    struct buf all;
    int rc; /* of a read */
};

static int on_read(void *arg, const char *data, size_t length, struct buf *shown)
{
    struct reading *r = arg;
    buf_add(&r->all, data, length);
    for (size_t i = 0; i < length; i++)
        if (data[i] != '#')
            buf_add(shown, &data[i], 1);
    return r->rc;
}

static void on_end(void *arg, struct buf *shown)
{
    (void)arg;
    buf_add_str(shown, ".");
}

static void set_reader(const struct bed *b, struct reading *reading)
{
    const struct sink_reader reader = {.read = on_read, .end = on_end, .arg = reading};
    sink_set_reader(b->sink, &reader);
}

static void reader_decides_what_is_written(void **state)
{
    struct reading reading = {0};
    struct bed b;
    int ends[2];
    char got[200] = "";
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    set_reader(&b, &reading);
    sink_add(b.sink, "a#b", 3);
    sink_add(b.sink, "##", 2);
    sink_add(b.sink, "c", 1);
    assert_int_equal(sink_added(b.sink), 3);
    assert_int_equal(sink_done(b.sink), 3);
    sink_free(b.sink);
    b.sink = NULL;
    assert_true(read(b.read_end, got, sizeof got - 1) > 0);
    assert_string_equal(got, "abc.");
    assert_string_equal(reading.all.data, "a#b##c");
    buf_done(&reading.all);
    done(&b);
}

static void reader_goes_on_when_nobody_reads_the_pipe(void **state)
{
    static char much[1024 * 1024];
    struct reading reading = {0};
    struct bed b;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    set_reader(&b, &reading);
    sink_add(b.sink, much, sizeof much);
    assert_int_equal(reading.all.len, sizeof much);
    close(b.read_end);
    b.read_end = dup(b.write_end); /* something to close */
    event_base_loop(b.base, EVLOOP_ONCE);
    sink_add(b.sink, much, sizeof much);
    assert_int_equal(reading.all.len, 2 * sizeof much);
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    buf_done(&reading.all);
    done(&b);
}

static void reader_that_cannot_go_on(void **state)
{
    struct reading reading = {.rc = -ENOMEM};
    struct bed b;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    make(&b, ends);
    set_reader(&b, &reading);
    sink_add(b.sink, "x", 1);
    assert_int_equal(b.broken, ENOMEM);
    b.broken = 0;
    sink_add(b.sink, "y", 1);
    assert_int_equal(b.broken, 0);
    assert_string_equal(reading.all.data, "x"); /* it is not asked again */
    assert_int_equal(sink_done(b.sink), sink_added(b.sink));
    buf_done(&reading.all);
    done(&b);
}

/* Before it was looked at, or later. */
static void terminal_that_hangs_up(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct bed b;
        int ends[2] = {posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), -1};
        assert_true(ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0);
        ends[1] = open(ptsname(ends[0]), O_WRONLY | O_NOCTTY | O_CLOEXEC);
        assert_true(ends[1] >= 0);
        if (early)
            close(ends[0]);
        make(&b, ends);
        if (!early)
            close(ends[0]);
        b.read_end = -1;
        sink_add(b.sink, "x", 1);
        sink_add(b.sink, "y", 1);
        assert_int_equal(sink_done(b.sink), sink_added(b.sink));
        assert_int_equal(b.broken, EPIPE);
        assert_true(sink_has_hung_up(b.sink));
        done(&b);
    }
}

static void device_that_fails(void **state)
{
    struct bed b;
    (void)state;
    const int ends[2] = {open("/dev/null", O_RDONLY), open("/dev/null", O_WRONLY)};
    make(&b, ends);
    failing = b.write_end;
    sink_add(b.sink, "x", 1);
    failing = -1;
    assert_int_equal(b.broken, EIO);
    assert_false(sink_has_hung_up(b.sink));
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_reader_of_a_pipe),
        cmocka_unit_test(slow_reader_of_a_socket),
        cmocka_unit_test(reader_goes_away),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(terminal_that_hangs_up),
        cmocka_unit_test(device_that_fails),
        cmocka_unit_test(discards),
        cmocka_unit_test(reader_decides_what_is_written),
        cmocka_unit_test(reader_goes_on_when_nobody_reads_the_pipe),
        cmocka_unit_test(reader_that_cannot_go_on),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
