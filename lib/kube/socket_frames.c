/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/socket_frames.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "lib/base/error.h"

enum opcode {
    OPCODE_CONTINUATION = 0,
    OPCODE_TEXT = 1,
    OPCODE_BINARY = 2,
    OPCODE_CLOSE = 8,
    OPCODE_PING = 9,
    OPCODE_PONG = 10,
};

#define FINAL 0x80
#define RESERVED 0x70
#define MASKED 0x80
#define CONTROL 0x08 /* of an opcode */
#define CONTROL_MAX 125
#define LENGTH_16 126
#define LENGTH_64 127

struct frame {
    uint8_t opcode;
    bool final;
    const char *payload;
    size_t length;
};

static uint64_t read_number(const char *bytes, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | (uint8_t)bytes[i];
    return number;
}

static bool is_data(uint8_t opcode)
{
    return opcode == OPCODE_TEXT || opcode == OPCODE_BINARY;
}

/* What a head may not be; NULL: it may be so. */
static const char *fault_of(const struct socket_frames *f, uint8_t first, uint8_t second)
{
    uint8_t opcode = first & 0x0f;
    if (first & RESERVED)
        return "a frame has reserved bits set";
    if (second & MASKED)
        return "a frame is masked";
    if (opcode == OPCODE_CLOSE || opcode == OPCODE_PING || opcode == OPCODE_PONG)
        return !(first & FINAL) || second > CONTROL_MAX ? "a control frame is too long or in parts"
                                                        : NULL;
    if (opcode == OPCODE_CONTINUATION)
        return f->in_message ? NULL : "a frame continues no message";
    if (!is_data(opcode))
        return "a frame has an unknown opcode";
    return f->in_message ? "a message begins within another" : NULL;
}

/* 1: a whole frame, of *ret_size bytes; 0: more must come. The length is judged before its bytes
 * have come. */
static int read_frame(const struct socket_frames *f, const char *bytes, size_t length,
                      struct frame *ret_frame, size_t *ret_size, struct drarun_error *err)
{
    if (length < 2)
        return 0;
    uint8_t first = (uint8_t)bytes[0], second = (uint8_t)bytes[1];
    const char *fault = fault_of(f, first, second);
    if (fault)
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO, "WebSocket: %s", fault);
    size_t number = second == LENGTH_64 ? 8 : second == LENGTH_16 ? 2 : 0;
    if (length < 2 + number)
        return 0;
    uint64_t payload = number ? read_number(bytes + 2, number) : second;
    if ((number == 2 && payload < LENGTH_16) || (number == 8 && payload <= UINT16_MAX))
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO,
                          "WebSocket: a length is written with more bytes than it needs");
    /* so much is kept only of data, and control frames are short */
    if (payload > SOCKET_MESSAGE_MAX - f->message.len && !(first & CONTROL))
        return error_kind(err, DRARUN_ERR_CLUSTER, EMSGSIZE,
                          "WebSocket: a message has more than %zu bytes", SOCKET_MESSAGE_MAX);
    if (length - 2 - number < payload)
        return 0;
    *ret_frame = (struct frame){.opcode = first & 0x0f,
                                .final = first & FINAL,
                                .payload = bytes + 2 + number,
                                .length = (size_t)payload};
    *ret_size = 2 + number + (size_t)payload;
    return 1;
}

/* Whole or not at all: who empties the inbox believes the length. */
static void add_message(struct buf *inbox, const char *bytes, size_t length)
{
    if (length == 0 || !buf_reserve(inbox, sizeof length + length))
        return;
    buf_add(inbox, &length, sizeof length);
    buf_add(inbox, bytes, length);
}

static void take_data(struct socket_frames *f, const struct frame *frame, struct buf *inbox)
{
    if (frame->final && !f->in_message) {
        add_message(inbox, frame->payload, frame->length);
        return;
    }
    f->in_message = !frame->final;
    buf_add(&f->message, frame->payload, frame->length);
    if (frame->final) {
        add_message(inbox, f->message.data, f->message.len);
        inbox->failed |= f->message.failed;
        buf_reset(&f->message);
    }
}

static int write_frame(uint8_t opcode, const void *payload, size_t length, struct buf *out)
{
    uint8_t head[14] = {(uint8_t)(FINAL | opcode)}, *mask;
    size_t number = length > UINT16_MAX ? 8 : length > CONTROL_MAX ? 2 : 0;
    head[1] = (uint8_t)(MASKED | (number == 8 ? LENGTH_64 : number == 2 ? LENGTH_16 : length));
    for (size_t i = 0; i < number; i++)
        head[2 + i] = (uint8_t)((uint64_t)length >> 8 * (number - 1 - i));
    mask = head + 2 + number;
    if (getrandom(mask, 4, 0) != 4)
        return -EIO;
    if (!buf_reserve(out, 2 + number + 4 + length))
        return -ENOMEM;
    buf_add(out, head, 2 + number + 4);
    size_t at = out->len;
    buf_add(out, payload, length);
    for (size_t i = 0; i < length; i++)
        out->data[at + i] ^= (char)mask[i % 4];
    return 0;
}

ssize_t socket_frames_read(struct socket_frames *frames, const char *bytes, size_t length,
                           struct buf *inbox, struct buf *replies, struct drarun_error *err)
{
    struct frame frame = {0};
    size_t at = 0, size = 0;
    int rc = 0;
    while (!frames->closed &&
           (rc = read_frame(frames, bytes + at, length - at, &frame, &size, err)) > 0) {
        if (frame.opcode == OPCODE_CLOSE)
            frames->closed = true;
        else if (frame.opcode == OPCODE_PING)
            rc = write_frame(OPCODE_PONG, frame.payload, frame.length, replies);
        else if (frame.opcode != OPCODE_PONG)
            take_data(frames, &frame, inbox);
        if (rc == -EIO)
            return error_set(err, EIO, "WebSocket: the kernel gave no random number for a pong");
        if (rc < 0 || inbox->failed)
            return error_set(err, ENOMEM, "WebSocket: out of memory");
        at += size;
    }
    return rc < 0 ? rc : (ssize_t)at;
}

int socket_frames_write(const void *message, size_t length, struct buf *out)
{
    return write_frame(OPCODE_BINARY, message, length, out);
}

int socket_frames_ping(struct buf *out)
{
    return write_frame(OPCODE_PING, "", 0, out);
}

void socket_frames_done(struct socket_frames *frames)
{
    buf_done(&frames->message);
    *frames = (struct socket_frames){0};
}
