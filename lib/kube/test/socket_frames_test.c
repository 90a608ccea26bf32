/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of WebSockets: the examples of RFC 6455 §5.7, what may not be, and any cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/kube/socket_frames.h"

struct reading {
    struct socket_frames frames;
    struct buf in, inbox, replies;
    struct drarun_error err;
};

static void reading_done(struct reading *r)
{
    socket_frames_done(&r->frames);
    buf_done(&r->in);
    buf_done(&r->inbox);
    buf_done(&r->replies);
}

static ssize_t reading_add(struct reading *r, const void *bytes, size_t length)
{
    buf_add(&r->in, bytes, length);
    ssize_t n =
        socket_frames_read(&r->frames, r->in.data, r->in.len, &r->inbox, &r->replies, &r->err);
    if (n > 0)
        buf_consume(&r->in, (size_t)n);
    return n;
}

/* The next message in the inbox is this one. */
static void assert_message(struct reading *r, const void *bytes, size_t length)
{
    size_t has = 0;
    assert_true(r->inbox.len >= sizeof has);
    memcpy(&has, r->inbox.data, sizeof has);
    assert_int_equal(has, length);
    assert_memory_equal(r->inbox.data + sizeof has, bytes, length);
    buf_consume(&r->inbox, sizeof has + has);
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static void examples_of_the_rfc(void **state)
{
    struct reading r = {0};
    static uint8_t frame[10 + 65536] = {0x82, 0x7e, 0x01, 0x00};
    (void)state;
    assert_int_equal(reading_add(&r, BYTES(0x81, 0x05, 'H', 'e', 'l', 'l', 'o')), 7);
    assert_message(&r, "Hello", 5);
    /* in two fragments */
    assert_int_equal(reading_add(&r, BYTES(0x01, 0x03, 'H', 'e', 'l')), 5);
    assert_int_equal(r.inbox.len, 0);
    assert_int_equal(reading_add(&r, BYTES(0x80, 0x02, 'l', 'o')), 4);
    assert_message(&r, "Hello", 5);
    /* 256 bytes, and 64 KiB */
    memset(frame + 4, 'a', 256);
    assert_int_equal(reading_add(&r, frame, 4 + 256), 4 + 256);
    assert_message(&r, frame + 4, 256);
    memcpy(frame, (const uint8_t[]){0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0}, 10);
    memset(frame + 10, 'b', 65536);
    assert_int_equal(reading_add(&r, frame, sizeof frame), sizeof frame);
    assert_message(&r, frame + 10, 65536);
    assert_int_equal(r.inbox.len, 0);
    reading_done(&r);
}

/* A masked frame of ours, as a server reads it. */
static void assert_written(const struct buf *out, size_t head, const void *bytes, size_t length)
{
    assert_int_equal(out->len, head + 4 + length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal((uint8_t)(out->data[head + 4 + i] ^ out->data[head + i % 4]),
                         ((const uint8_t *)bytes)[i]);
}

static void pings_are_answered(void **state)
{
    struct reading r = {0};
    (void)state;
    /* between two fragments, too */
    assert_int_equal(reading_add(&r, BYTES(0x01, 0x03, 'H', 'e', 'l')), 5);
    assert_int_equal(reading_add(&r, BYTES(0x89, 0x05, 'H', 'e', 'l', 'l', 'o')), 7);
    assert_memory_equal(r.replies.data, "\x8a\x85", 2);
    assert_written(&r.replies, 2, "Hello", 5);
    assert_int_equal(reading_add(&r, BYTES(0x8a, 0x00)), 2); /* a pong nobody asked for */
    assert_int_equal(reading_add(&r, BYTES(0x80, 0x02, 'l', 'o')), 4);
    assert_message(&r, "Hello", 5);
    reading_done(&r);
}

static void nothing_after_a_close_counts(void **state)
{
    struct reading r = {0};
    (void)state;
    assert_int_equal(
        reading_add(&r, BYTES(0x82, 0x01, 'a', 0x88, 0x02, 0x03, 0xe8, 0x82, 0x01, 'b')), 7);
    assert_true(r.frames.closed);
    assert_message(&r, "a", 1);
    assert_int_equal(r.inbox.len, 0);
    assert_int_equal(reading_add(&r, BYTES(0xff)), 0);
    reading_done(&r);
}

static void what_may_not_be(void **state)
{
    static const struct {
        uint8_t bytes[10];
        size_t length;
        const char *says;
        int code;
    } cases[] = {
        {{0xc2, 0x00}, 2, "reserved bits", EPROTO},
        {{0x82, 0x81, 0, 0, 0, 0, 'a'}, 7, "masked", EPROTO},
        {{0x09, 0x00}, 2, "control frame", EPROTO},
        {{0x89, 0x7e, 0x00, 0x7e}, 4, "control frame", EPROTO},
        {{0x80, 0x01, 'a'}, 3, "continues no message", EPROTO},
        {{0x02, 0x01, 'a', 0x82, 0x01, 'b'}, 6, "within another", EPROTO},
        {{0x83, 0x00}, 2, "unknown opcode", EPROTO},
        {{0x8b, 0x00}, 2, "unknown opcode", EPROTO},
        {{0x82, 0x7e, 0x00, 0x7d}, 4, "more bytes than it needs", EPROTO},
        {{0x82, 0x7f, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 10, "more bytes than it needs", EPROTO},
        {{0x82, 0x7f, 0, 0, 0, 0, 0, 0x40, 0, 1}, 10, "more than 4194304 bytes", EMSGSIZE},
        {{0x82, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 10, "more than", EMSGSIZE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading r = {0};
        assert_int_equal(reading_add(&r, cases[i].bytes, cases[i].length), -cases[i].code);
        assert_non_null(strstr(r.err.text, cases[i].says));
        reading_done(&r);
    }
}

/* In fragments, each of which is short enough. */
static void message_that_grows_too_long(void **state)
{
    enum { PIECE = 1 << 20 };
    struct reading r = {0};
    uint8_t *frame = calloc(1, 10 + PIECE);
    (void)state;
    assert_non_null(frame);
    memcpy(frame, (const uint8_t[]){0x02, 0x7f, 0, 0, 0, 0, 0, 0x10, 0, 0}, 10);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(reading_add(&r, frame, 10 + PIECE), 10 + PIECE);
        frame[0] = 0x00;
    }
    assert_int_equal(reading_add(&r, BYTES(0x80, 0x01, 'a')), -EMSGSIZE);
    reading_done(&r);
    free(frame);
}

static void byte_after_byte(void **state)
{
    static const uint8_t bytes[] = {0x02, 0x02, 'a', 'b',  0x89, 0x01, 'p',  0x00, 0x00,
                                    0x80, 0x01, 'c', 0x82, 0x00, 0x82, 0x01, 'd'};
    struct reading r = {0};
    ssize_t read = 0;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        ssize_t n = reading_add(&r, bytes + i, 1);
        assert_true(n >= 0);
        read += n;
    }
    assert_int_equal(read, sizeof bytes);
    assert_message(&r, "abc", 3);
    assert_message(&r, "d", 1); /* the empty message says nothing */
    assert_int_equal(r.inbox.len, 0);
    assert_int_equal(r.replies.len, 2 + 4 + 1);
    reading_done(&r);
}

static void what_we_write(void **state)
{
    static const struct {
        size_t length, head;
        uint8_t bytes[10];
    } cases[] = {
        {0, 2, {0x82, 0x80}},
        {125, 2, {0x82, 0xfd}},
        {126, 4, {0x82, 0xfe, 0x00, 0x7e}},
        {65535, 4, {0x82, 0xfe, 0xff, 0xff}},
        {65536, 10, {0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0}},
    };
    static uint8_t message[65536];
    (void)state;
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out = BUF_INIT;
        assert_int_equal(socket_frames_write(message, cases[i].length, &out), 0);
        assert_memory_equal(out.data, cases[i].bytes, cases[i].head);
        assert_written(&out, cases[i].head, message, cases[i].length);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_rfc),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(nothing_after_a_close_counts),
        cmocka_unit_test(what_may_not_be),
        cmocka_unit_test(message_that_grows_too_long),
        cmocka_unit_test(byte_after_byte),
        cmocka_unit_test(what_we_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
