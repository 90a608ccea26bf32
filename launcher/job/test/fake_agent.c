/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that starts nothing: it plays ranks whose words are their script, and misbehaves when
 * FAKE_AGENT says so. It speaks the real protocol on the real socket (drarun-worker --fd 3), for
 * what a real agent cannot be made to do.
 *
 *   drarun -n 2 play out:text part:text err:text flood:BYTES sleep:MS stdin exit:3 signal:11
 *
 * FAKE_AGENT: garbage, half, huge, silent, major, close, crash, deaf, greedy, stranger, early-done,
 * never-ready, never-done, twice. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "lib/wire/frame.h"
#include "lib/wire/hello.h"

#define CONTROL 3
#define WINDOW (1024u * 1024)
#define PIECE (64u * 1024)

struct player {
    uint32_t rank;
    char **script;
    size_t words, at;
    int64_t asleep_until;
    size_t flood;
    bool ended;
};

static struct {
    Drarun__Wire__Envelope *launch;
    struct player *players;
    size_t count;
    size_t underway;
    bool started, input_ended, ending, done;
    int signo;
} self;

static const char *misdeed(void)
{
    const char *text = getenv("FAKE_AGENT");
    return text ? text : "";
}

static bool is(const char *what)
{
    return strcmp(misdeed(), what) == 0;
}

static void leave(void)
{
    _exit(is("never-done") ? 1 : 0);
}

static void send_bytes(const void *data, size_t length)
{
    if (fd_write_all(CONTROL, data, length) < 0)
        leave();
}

static void say(const Drarun__Wire__Envelope *message)
{
    size_t length = drarun__wire__envelope__get_packed_size(message);
    uint8_t *frame = malloc(length + FRAME_HEADER);
    for (int i = 0; i < 4; i++)
        frame[i] = (uint8_t)(length >> (24 - 8 * i));
    drarun__wire__envelope__pack(message, frame + FRAME_HEADER);
    send_bytes(frame, length + FRAME_HEADER);
    free(frame);
}

static void say_hello(void)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_AGENT, "5.0.7");
    hello.host = unconst("fakehost");
    hello.cpus = 1;
    if (is("major"))
        hello.major = 99, hello.minor = 0;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &hello);
    say(&envelope);
    if (is("twice"))
        say(&envelope);
}

static void say_ready(void)
{
    Drarun__Wire__Ready ready = DRARUN__WIRE__READY__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(READY, ready, &ready);
    say(&envelope);
}

static void say_done(void)
{
    Drarun__Wire__Done done = DRARUN__WIRE__DONE__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(DONE, done, &done);
    self.done = true;
    if (!is("never-done"))
        say(&envelope);
}

static void say_output(uint32_t rank, int stream, const char *data, size_t length, bool partial)
{
    Drarun__Wire__Output output = DRARUN__WIRE__OUTPUT__INIT;
    output.rank = is("stranger") ? rank + 1000 : rank;
    output.stream = stream;
    output.data.data = unconst(data);
    output.data.len = length;
    output.partial = partial;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(OUTPUT, output, &output);
    say(&envelope);
    self.underway += length;
}

static void say_end(struct player *p, int code, int signo)
{
    Drarun__Wire__RankEnd end = DRARUN__WIRE__RANK_END__INIT;
    end.rank = p->rank;
    end.code = code;
    end.signo = (uint32_t)signo;
    end.by_us = self.ending;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(RANK_END, rank_end, &end);
    p->ended = true;
    say(&envelope);
}

static void misbehave_first(void)
{
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    static const uint8_t half[] = {0, 0, 1, 0, 1, 2, 3};
    if (is("garbage"))
        send_bytes("\0\0\0\4\377\377\377\377", 8);
    if (is("huge"))
        send_bytes(huge, sizeof huge);
    if (is("half"))
        send_bytes(half, sizeof half);
    if (is("half") || is("close"))
        leave();
    if (is("crash")) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it */
        raise(SIGSEGV);
    }
    while (is("silent") || is("deaf")) /* deaf: says hello and reads nothing */
        pause();
}

static void on_launch(void)
{
    const Drarun__Wire__Launch *launch = self.launch->launch;
    for (size_t i = 0; i < launch->n_blocks; i++) {
        const Drarun__Wire__Block *block = launch->blocks[i];
        for (uint32_t r = 0; block->worker == launch->worker && r < block->count; r++) {
            self.players = realloc(self.players, (self.count + 1) * sizeof *self.players);
            self.players[self.count++] = (struct player){
                .rank = block->first + r,
                .script = launch->apps[block->app]->argv,
                .words = launch->apps[block->app]->n_argv,
                .at = 1,
            };
        }
    }
    if (is("never-ready"))
        return;
    say_ready();
    if (is("early-done"))
        say_done();
    self.started = launch->start;
}

static void echo(const Drarun__Wire__Input *input)
{
    Drarun__Wire__InputAck ack = DRARUN__WIRE__INPUT_ACK__INIT;
    ack.bytes = is("greedy") ? 1u << 30 : input->data.len;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(INPUT_ACK, input_ack, &ack);
    if (input->data.len > 0) {
        say_output(self.players[0].rank, 1, (char *)input->data.data, input->data.len, false);
        say(&envelope);
    }
    self.input_ended |= input->eof;
}

static void answer(const Drarun__Wire__Ping *ping)
{
    Drarun__Wire__Pong pong = DRARUN__WIRE__PONG__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PONG, pong, &pong);
    pong.ask = ping->ask;
    say(&envelope);
}

/* Takes the message when it keeps it. */
static void hear(Drarun__Wire__Envelope **message)
{
    switch ((*message)->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_LAUNCH:
        self.launch = *message;
        *message = NULL;
        on_launch();
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_START:
        self.started = true;
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_OUTPUT_ACK:
        self.underway -= (*message)->output_ack->bytes;
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_INPUT:
        echo((*message)->input);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_SIGNAL:
        self.signo = (*message)->signal->signo;
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_END:
        self.ending = true;
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_PING:
        answer((*message)->ping);
        break;
    default:
        break;
    }
}

static void hear_all(int wait_ms)
{
    static uint8_t in[FRAME_MAX + FRAME_HEADER];
    static size_t have;
    struct pollfd ready = {.fd = CONTROL, .events = POLLIN};
    if (poll(&ready, 1, wait_ms) <= 0)
        return;
    ssize_t n = read(CONTROL, in + have, sizeof in - have);
    if (n <= 0)
        leave();
    have += (size_t)n;
    uint32_t length = 0;
    while (have >= FRAME_HEADER && frame_body_length(in, &length, NULL) == 0 &&
           have >= FRAME_HEADER + length) {
        Drarun__Wire__Envelope *message = NULL;
        if (frame_decode(in + FRAME_HEADER, length, &message, NULL) == 0)
            hear(&message);
        if (message)
            drarun__wire__envelope__free_unpacked(message, NULL);
        have -= FRAME_HEADER + length;
        memmove(in, in + FRAME_HEADER + length, have);
    }
}

static void flood(struct player *p)
{
    static char piece[PIECE];
    memset(piece, 'x', sizeof piece - 1);
    piece[sizeof piece - 1] = '\n';
    while (p->flood > 0 && (self.underway + PIECE <= WINDOW || is("greedy"))) {
        size_t n = p->flood < PIECE ? p->flood : PIECE;
        say_output(p->rank, 1, piece + sizeof piece - n, n, false);
        p->flood -= n;
    }
}

static bool begins(const char *word, const char *verb, const char **ret_rest)
{
    size_t n = strlen(verb);
    *ret_rest = word + n;
    return strncmp(word, verb, n) == 0;
}

/* One word of its script; false when it must wait. */
static bool play(struct player *p)
{
    const char *rest;
    if (p->asleep_until > clock_ms())
        return false;
    if (p->flood > 0) {
        flood(p);
        return false;
    }
    if (p->at == p->words) {
        say_end(p, 0, 0);
        return true;
    }
    const char *word = p->script[p->at];
    if (strcmp(word, "stdin") == 0 && !self.input_ended)
        return false;
    p->at++;
    if (begins(word, "out:", &rest) || begins(word, "line:", &rest)) {
        char line[512];
        int n = snprintf(line, sizeof line, "%s%s", rest, word[0] == 'l' ? "\n" : "");
        say_output(p->rank, 1, line, (size_t)n, false);
    } else if (begins(word, "part:", &rest)) {
        say_output(p->rank, 1, rest, strlen(rest), true);
    } else if (begins(word, "err:", &rest)) {
        say_output(p->rank, 2, rest, strlen(rest), false);
    } else if (begins(word, "flood:", &rest)) {
        p->flood = strtoul(rest, NULL, 10);
    } else if (begins(word, "sleep:", &rest)) {
        p->asleep_until = clock_ms() + atoi(rest);
    } else if (begins(word, "exit:", &rest)) {
        say_end(p, atoi(rest), 0);
    } else if (begins(word, "signal:", &rest)) {
        say_end(p, 0, atoi(rest));
    }
    return true;
}

static void play_all(void)
{
    bool moved = true, all = true;
    while (moved) {
        moved = false;
        all = true;
        for (size_t i = 0; i < self.count; i++) {
            struct player *p = &self.players[i];
            if (!p->ended && (self.ending || self.signo == SIGINT))
                say_end(p, 0, self.ending ? SIGTERM : self.signo);
            if (!p->ended)
                moved |= play(p);
            all &= p->ended;
        }
    }
    if (all && !self.done && (self.launch || self.ending))
        say_done();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    if (!is("garbage") && !is("silent") && !is("huge"))
        say_hello();
    misbehave_first();
    for (;;) {
        hear_all(5);
        if (self.started || self.ending)
            play_all();
    }
}
