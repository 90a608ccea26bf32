/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "lib/wire/frame.h"

#define TEXT_MAX 64

static bool no_memory; /* libevent gets none */

/* A channel under test; its peer is a bare descriptor that says what it likes. */
struct fixture {
    struct event_base *base;
    struct channel *channel;
    int fd; /* the channel's, over TCP */
    int peer;
    int messages;
    char last[TEXT_MAX]; /* text of the last Note */
    size_t data;         /* bytes of Output so far */
    int closed;
    struct drarun_error why;
    int drained;
    bool free_on_message;
    struct event *watchdog;
};

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct fixture *f = arg;
    assert_ptr_equal(channel, f->channel);
    assert_int_equal(f->closed, 0);
    f->messages++;
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_NOTE)
        strncpy(f->last, message->note->text, TEXT_MAX - 1);
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_OUTPUT)
        f->data += message->output->data.len;
    if (f->free_on_message)
        channel_free(TAKE_PTR(f->channel));
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct fixture *f = arg;
    assert_ptr_equal(channel, f->channel);
    f->closed++;
    f->why = *err;
}

static void on_drained(void *arg)
{
    struct fixture *f = arg;
    f->drained++;
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    fail_msg("nothing happened for 20 s");
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct timeval limit = timeval_from_ms(20000);
    int pair[2];
    f->base = event_base_new();
    f->watchdog = evtimer_new(f->base, on_watchdog, f);
    evtimer_add(f->watchdog, &limit);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    f->peer = pair[1];
    f->channel = channel_new_take(f->base, pair[0], on_message, on_closed, f);
    *state = f;
    return f->channel ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    channel_free(f->channel);
    close_fd(&f->peer);
    event_free(f->watchdog);
    event_base_free(f->base);
    free(f);
    return 0;
}

static void turn(struct fixture *f)
{
    event_base_loop(f->base, EVLOOP_ONCE);
}

/* Turns until nothing more is to be done at once. */
static void settle(struct fixture *f)
{
    for (int i = 0; i < 100; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
}

static void until_closed(struct fixture *f)
{
    while (f->closed == 0)
        turn(f);
}

static void say(struct fixture *f, const void *bytes, size_t length)
{
    assert_int_equal(fd_write_all(f->peer, bytes, length), 0);
}

static size_t note_frame(const char *text, uint8_t *frame, size_t size)
{
    Drarun__Wire__Note note = DRARUN__WIRE__NOTE__INIT;
    note.text = unconst(text);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NOTE, note, &note);
    size_t length = drarun__wire__envelope__get_packed_size(&envelope);
    assert_true(FRAME_HEADER + length <= size);
    memset(frame, 0, FRAME_HEADER);
    frame[3] = (uint8_t)length;
    drarun__wire__envelope__pack(&envelope, frame + FRAME_HEADER);
    return FRAME_HEADER + length;
}

static void send_note(struct fixture *f, const char *text)
{
    Drarun__Wire__Note note = DRARUN__WIRE__NOTE__INIT;
    note.text = unconst(text);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NOTE, note, &note);
    assert_int_equal(channel_send(f->channel, &envelope), 0);
}

static void messages_arrive_whole(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[2 * TEXT_MAX];
    size_t first = note_frame("one", frame, sizeof frame);
    size_t both = first + note_frame("two", frame + first, sizeof frame - first);
    for (size_t i = 0; i < both - 1; i++) { /* byte by byte */
        say(f, frame + i, 1);
        settle(f);
        assert_int_equal(f->messages, i + 1 >= first);
    }
    assert_string_equal(f->last, "one");
    say(f, frame + both - 1, 1);
    settle(f);
    assert_int_equal(f->messages, 2);
    assert_string_equal(f->last, "two");
    say(f, frame, both); /* two at a time */
    settle(f);
    assert_int_equal(f->messages, 4);
    assert_int_equal(channel_bytes(f->channel), 2 * both);
    assert_int_equal(f->closed, 0);
}

static void orderly_end(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[TEXT_MAX];
    say(f, frame, note_frame("last words", frame, sizeof frame));
    close_fd(&f->peer);
    until_closed(f);
    assert_string_equal(f->last, "last words");
    assert_int_equal(f->why.code, 0);
    settle(f);
    assert_int_equal(f->closed, 1);
}

static void half_a_frame(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[TEXT_MAX];
    say(f, frame, note_frame("cut off", frame, sizeof frame) - 3);
    settle(f);
    assert_int_equal(f->closed, 0);
    close_fd(&f->peer);
    until_closed(f);
    assert_int_equal(f->messages, 0);
    assert_int_equal(f->why.code, EPROTO);
    assert_non_null(strstr(f->why.text, "in the middle of a message"));
}

static void frame_lengths_out_of_range(void **state)
{
    static const uint8_t headers[][4] = {
        {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x01, 0, 0, 1}, {'G', 'E', 'T', ' '}};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        say(f, headers[i], 4);
        until_closed(f);
        assert_int_equal(f->why.code, EMSGSIZE);
        assert_non_null(strstr(f->why.text, "not a drarun peer"));
        say(f, "more", 4); /* which nobody reads */
        settle(f);
        assert_int_equal(f->closed, 1);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
        f = *state;
    }
}

static void body_that_is_no_message(void **state)
{
    static const uint8_t bodies[][8] = {
        {0, 0, 0, 2, 0xff, 0xff},       /* no protobuf */
        {0, 0, 0, 2, 0x0a, 0x40},       /* a length beyond the end */
        {0, 0, 0, 3, 0xf8, 0x3f, 0x01}, /* a field that nobody knows: no message in it */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        say(f, bodies[i], 4 + bodies[i][3]);
        until_closed(f);
        assert_int_equal(f->why.code, EPROTO);
        assert_int_equal(f->messages, 0);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
        f = *state;
    }
}

static void good_frames_before_a_bad_one_count(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[TEXT_MAX];
    size_t length = note_frame("good", frame, sizeof frame);
    memset(frame + length, 0, 4);
    say(f, frame, length + 4);
    until_closed(f);
    assert_int_equal(f->messages, 1);
    assert_int_equal(f->why.code, EMSGSIZE);
}

/* A peer that announces 16 MiB and then floods: no more than a frame and the next one's start. */
static void input_is_bounded(void **state)
{
    struct fixture *f = *state;
    static uint8_t zeros[65536];
    uint8_t header[4] = {0x01, 0, 0, 0};
    size_t written = 0;
    fcntl(f->peer, F_SETFL, O_NONBLOCK);
    say(f, header, sizeof header);
    while (written < 64u * 1024 * 1024 && f->closed == 0) {
        ssize_t n = write(f->peer, zeros, sizeof zeros);
        if (n > 0)
            written += (size_t)n;
        else
            event_base_loop(f->base, EVLOOP_NONBLOCK);
    }
    until_closed(f);
    assert_int_equal(f->why.code, EPROTO); /* 16 MiB of zeros are no message */
    assert_true(written <= FRAME_MAX + 4u * 1024 * 1024);
}

static void largest_message(void **state)
{
    struct fixture *f = *state;
    size_t length = FRAME_MAX - 64;
    cleanup_free uint8_t *data = calloc(1, length);
    Drarun__Wire__Output output = DRARUN__WIRE__OUTPUT__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT, output, &output);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct channel *sender = channel_new_take(f->base, f->peer, on_message, on_closed, f);
    f->peer = pair[1];
    close(pair[0]);
    output.data.data = data;
    output.data.len = length;
    assert_int_equal(channel_send(sender, &envelope), 0);
    channel_on_drained(sender, on_drained, f);
    while (f->data < length)
        turn(f);
    assert_int_equal(f->messages, 1);
    assert_int_equal(f->drained, 1);
    output.data.len = FRAME_MAX; /* with its header too large */
    cleanup_free uint8_t *more = calloc(1, FRAME_MAX);
    output.data.data = more;
    assert_int_equal(channel_send(sender, &envelope), -EMSGSIZE);
    assert_int_equal(channel_backlog(sender), 0);
    channel_free(sender);
}

/* A stream of output is read in as few turns as it needs. */
static void what_is_there_is_read_at_once(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[32 * 1024];
    Drarun__Wire__Output output = DRARUN__WIRE__OUTPUT__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT, output, &output);
    output.data.data = data;
    output.data.len = sizeof data;
    struct channel *sender = channel_new_take(f->base, f->peer, on_message, on_closed, f);
    f->peer = -1;
    for (int i = 0; i < 4; i++)
        assert_int_equal(channel_send(sender, &envelope), 0);
    channel_on_drained(sender, on_drained, f);
    int turns = 0;
    for (; f->messages < 4; turns++)
        turn(f);
    assert_int_equal(f->data, 4 * sizeof data);
    assert_true(turns <= 8);
    channel_free(sender);
}

/* A peer that stops reading: sending never blocks, and what waits is known. */
static void peer_that_does_not_read(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[1024 * 1024];
    Drarun__Wire__Output output = DRARUN__WIRE__OUTPUT__INIT;
    output.data.data = data;
    output.data.len = sizeof data;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT, output, &output);
    for (int i = 0; i < 8; i++)
        assert_int_equal(channel_send(f->channel, &envelope), 0);
    channel_on_drained(f->channel, on_drained, f);
    settle(f);
    assert_true(channel_backlog(f->channel) > 4 * sizeof data);
    assert_int_equal(f->drained, 0);
    fcntl(f->peer, F_SETFL, O_NONBLOCK);
    while (f->drained == 0) {
        ssize_t n = read(f->peer, data, sizeof data);
        if (n <= 0)
            event_base_loop(f->base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(channel_backlog(f->channel), 0);
}

/* Over TCP, in place of the fixture's socketpair; the peer has room for little. */
static void connect_over_tcp(struct fixture *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int little = 4096;
    cleanup_close int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(door, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    assert_int_equal(bind(door, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(door, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(listen(door, 1), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    channel_free(f->channel);
    close_fd(&f->peer);
    f->peer = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    f->channel = channel_new_take(f->base, fd, on_message, on_closed, f);
    f->fd = fd;
    assert_true(f->peer >= 0);
    assert_non_null(f->channel);
}

static unsigned int user_timeout(const struct fixture *f)
{
    unsigned int ms = 0;
    socklen_t size = sizeof ms;
    assert_int_equal(getsockopt(f->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size), 0);
    return ms;
}

/* Its kernel answers all the while, as for a process that is stopped. */
static void peer_that_does_not_read_for_long(void **state)
{
    struct fixture *f = *state;
    static uint8_t data[1024 * 1024];
    const unsigned int silence_ms = 2000; /* four looks, of which the machine may miss some */
    Drarun__Wire__Output output = DRARUN__WIRE__OUTPUT__INIT;
    output.data.data = data;
    output.data.len = sizeof data;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT, output, &output);
    connect_over_tcp(f);
    channel_set_silence(f->channel, silence_ms);
    assert_int_equal(user_timeout(f), silence_ms);
    for (int i = 0; i < 8; i++)
        assert_int_equal(channel_send(f->channel, &envelope), 0);
    channel_on_drained(f->channel, on_drained, f);
    for (int64_t end = clock_ms() + 2 * silence_ms; clock_ms() < end && f->closed == 0;)
        turn(f);
    assert_int_equal(f->closed, 0);
    assert_int_equal(f->drained, 0);
    while (f->drained == 0) {
        ssize_t n = read(f->peer, data, sizeof data);
        if (n <= 0)
            event_base_loop(f->base, EVLOOP_NONBLOCK);
    }
    while (user_timeout(f) != silence_ms) { /* from the next look on it must answer again */
        turn(f);
        while (read(f->peer, data, sizeof data) > 0)
            ;
    }
    assert_int_equal(f->closed, 0);
}

static void drained_at_once_comes_from_the_loop(void **state)
{
    struct fixture *f = *state;
    channel_on_drained(f->channel, on_drained, f);
    assert_int_equal(f->drained, 0);
    settle(f);
    assert_int_equal(f->drained, 1);
}

static void peer_that_is_gone(void **state)
{
    struct fixture *f = *state;
    close_fd(&f->peer);
    until_closed(f);
    Drarun__Wire__Ping ping = DRARUN__WIRE__PING__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PING, ping, &ping);
    assert_int_equal(channel_send(f->channel, &envelope), -EPIPE);
    settle(f);
    assert_int_equal(f->closed, 1);
}

static void freed_by_its_own_message(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[2 * TEXT_MAX];
    size_t length = note_frame("first", frame, sizeof frame);
    length += note_frame("second", frame + length, sizeof frame - length);
    f->free_on_message = true;
    say(f, frame, length);
    settle(f);
    assert_int_equal(f->messages, 1);
    assert_null(f->channel);
    assert_int_equal(read(f->peer, frame, 1), 0); /* the descriptor was closed */
}

static void order_is_kept(void **state)
{
    struct fixture *f = *state;
    send_note(f, "a");
    send_note(f, "b");
    settle(f);
    uint8_t expected[2 * TEXT_MAX], got[2 * TEXT_MAX];
    size_t length = note_frame("a", expected, sizeof expected);
    length += note_frame("b", expected + length, sizeof expected - length);
    assert_int_equal(read(f->peer, got, sizeof got), length);
    assert_memory_equal(got, expected, length);
    assert_string_equal(channel_peer(f->channel), "socketpair");
}

/* The peer may wait for what could not be sent, and must see that nothing comes. */
static void message_without_memory_ends_it(void **state)
{
    struct fixture *f = *state;
    Drarun__Wire__Note note = DRARUN__WIRE__NOTE__INIT;
    note.text = unconst("lost");
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NOTE, note, &note);
    char byte;
    no_memory = true;
    assert_int_equal(channel_send(f->channel, &envelope), -ENOMEM);
    no_memory = false;
    assert_int_equal(channel_send(f->channel, &envelope), -EPIPE);
    until_closed(f);
    assert_int_equal(f->why.code, ENOMEM);
    assert_string_equal(f->why.text, "out of memory for a message to socketpair");
    assert_int_equal(read(f->peer, &byte, 1), 0);
}

/* ---- libevent's memory ---- */

static void *event_malloc(size_t size)
{
    return no_memory ? NULL : malloc(size);
}

static void *event_realloc(void *old, size_t size)
{
    return no_memory ? NULL : realloc(old, size);
}

int main(void)
{
    event_set_mem_functions(event_malloc, event_realloc, free);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(messages_arrive_whole),
        TEST(orderly_end),
        TEST(half_a_frame),
        TEST(frame_lengths_out_of_range),
        TEST(body_that_is_no_message),
        TEST(good_frames_before_a_bad_one_count),
        TEST(input_is_bounded),
        TEST(largest_message),
        TEST(what_is_there_is_read_at_once),
        TEST(peer_that_does_not_read),
        TEST(peer_that_does_not_read_for_long),
        TEST(drained_at_once_comes_from_the_loop),
        TEST(peer_that_is_gone),
        TEST(freed_by_its_own_message),
        TEST(order_is_kept),
        TEST(message_without_memory_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
