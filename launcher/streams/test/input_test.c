/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/streams/input.h"
#include "lib/base/cleanup.h"

#define PIECE (32u * 1024)
#define WINDOW (256u * 1024)

struct bed {
    struct event_base *base;
    struct input *input;
    size_t got, ends;
    bool wrong; /* a byte that is not the next */
};

static unsigned char byte_at(size_t at)
{
    return (unsigned char)(at % 251);
}

static void on_data(void *arg, const void *data, size_t length)
{
    struct bed *b = arg;
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        b->wrong |= bytes[i] != byte_at(b->got + i);
    b->got += length;
    b->ends += length == 0;
}

static void make(struct bed *b, int fd, uint32_t agents)
{
    *b = (struct bed){.base = event_base_new()};
    struct input_owner owner = {on_data, b};
    b->input = input_new(b->base, fd, agents, &owner);
    assert_non_null(b->input);
}

static void done(struct bed *b)
{
    assert_false(b->wrong);
    input_free(b->input);
    event_base_free(b->base);
}

/* As long as there is something to do now. */
static void turn(struct bed *b)
{
    for (int i = 0; i < 64; i++)
        event_base_loop(b->base, EVLOOP_NONBLOCK);
}

static int file_of(size_t length)
{
    int fd = memfd_create("in", MFD_CLOEXEC);
    unsigned char *bytes = malloc(length + 1);
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(write(fd, bytes, length), length);
    free(bytes);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void test_what_is_there(void **state)
{
    static const struct {
        const char *path;
        int flags;
        bool there;
    } rows[] = {{"/dev/null", O_RDONLY, false}, {"/dev/null", O_RDWR, false},
                {"/dev/zero", O_RDONLY, true},  {"/dev/zero", O_RDWR, true},
                {"/dev/zero", O_WRONLY, false}, {"/proc/self/stat", O_RDONLY, true}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int fd = open(rows[i].path, rows[i].flags | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(input_is_there(fd), rows[i].there);
        close(fd);
    }
    assert_false(input_is_there(-1));
}

static void test_nothing_before_start_or_after_stop(void **state)
{
    struct bed b;
    int fd = file_of(10);
    (void)state;
    make(&b, fd, 1);
    turn(&b);
    assert_int_equal(b.got + b.ends, 0);
    input_stop(b.input);
    input_start(b.input);
    turn(&b);
    assert_int_equal(b.got + b.ends, 0);
    done(&b);
    close(fd);
}

/* A file is read a piece at a time, up to what may be on its way to the slowest agent. */
static void test_window(void **state)
{
    struct bed b;
    int fd = file_of(WINDOW + 2 * PIECE + 7);
    (void)state;
    make(&b, fd, 2);
    input_start(b.input);
    turn(&b);
    assert_int_equal(b.got, WINDOW);
    assert_true(input_passed(b.input, 0, WINDOW));
    turn(&b);
    assert_int_equal(b.got, WINDOW); /* the other has passed nothing on */
    assert_true(input_passed(b.input, 1, PIECE - 1));
    turn(&b);
    assert_int_equal(b.got, WINDOW);
    assert_true(input_passed(b.input, 1, 1));
    turn(&b);
    assert_int_equal(b.got, WINDOW + PIECE);
    assert_true(input_passed(b.input, 1, WINDOW));
    turn(&b);
    assert_int_equal(b.got, WINDOW + 2 * PIECE + 7);
    assert_int_equal(b.ends, 1);
    turn(&b);
    assert_int_equal(b.ends, 1);
    done(&b);
    close(fd);
}

static void test_passed_more_than_given(void **state)
{
    struct bed b;
    int fd = file_of(10);
    (void)state;
    make(&b, fd, 2);
    input_start(b.input);
    turn(&b);
    assert_int_equal(b.got, 10);
    assert_false(input_passed(b.input, 0, 11));
    assert_false(input_passed(b.input, 2, 1));
    assert_true(input_passed(b.input, 0, 4));
    assert_false(input_passed(b.input, 0, 7));
    assert_true(input_passed(b.input, 0, 6));
    assert_true(input_passed(b.input, 1, 10));
    done(&b);
    close(fd);
}

/* ends: what is written to ends[1] arrives; the flags that others share stay as they were. */
static void check_stream(const int ends[2])
{
    struct bed b;
    int flags = fcntl(ends[0], F_GETFL);
    make(&b, ends[0], 1);
    input_start(b.input);
    turn(&b);
    assert_int_equal(b.got + b.ends, 0); /* and the loop was not blocked */
    for (size_t at = 0; at < 100; at += 10) {
        unsigned char bytes[10];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = byte_at(at + i);
        assert_int_equal(write(ends[1], bytes, sizeof bytes), sizeof bytes);
        turn(&b);
        assert_int_equal(b.got, at + 10);
    }
    assert_int_equal(b.ends, 0);
    assert_int_equal(fcntl(ends[0], F_GETFL), flags);
    close(ends[1]);
    turn(&b);
    assert_int_equal(b.ends, 1);
    done(&b);
    close(ends[0]);
}

static void test_pipe(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    check_stream(ends);
}

static void test_socket(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    check_stream(ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_passed_more_than_given),
        cmocka_unit_test(test_nothing_before_start_or_after_stop),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_socket),
        cmocka_unit_test(test_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
