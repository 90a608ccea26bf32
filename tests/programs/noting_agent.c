/* SPDX-License-Identifier: Apache-2.0 */
/* An agent by hand: noting_agent KEY-FILE HOST WORD... listens on 127.0.0.1 ("listening on port
 * N"), serves one launcher, and starts nothing. Its words are what it does once it has the job:
 * "note:TEXT", "sleep:MS", "ready", "failure:TEXT", "start" (waits until the ranks may start),
 * "end" (its ranks have succeeded). A real agent has no note that is the same on every worker
 * before the ranks start. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "lib/wire/hello.h"
#include "lib/wire/key_file.h"
#include "lib/wire/tls.h"

#define TIME_LIMIT_S 60

static struct {
    struct event_base *base;
    struct channel *channel;
    struct event *asleep;
    char **words;
    const char *host;
    uint32_t worker;
    bool launched, started, waits;
} self;

static void tell(Drarun__Wire__Envelope message)
{
    channel_send(self.channel, &message);
}

static void say_hello(void)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_AGENT, "5.0.7");
    hello.host = unconst(self.host);
    hello.cpus = 1;
    tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(HELLO, hello, &hello));
}

static void end(void)
{
    Drarun__Wire__Done done = DRARUN__WIRE__DONE__INIT;
    Drarun__Wire__RankEnd rank = DRARUN__WIRE__RANK_END__INIT;
    rank.rank = self.worker;
    tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(RANK_END, rank_end, &rank));
    tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(DONE, done, &done));
}

static void do_word(const char *word)
{
    const char *rest = strchr(word, ':') ? strchr(word, ':') + 1 : "";
    if (strncmp(word, "note:", 5) == 0) {
        Drarun__Wire__Note note = DRARUN__WIRE__NOTE__INIT;
        note.text = unconst(rest);
        tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(NOTE, note, &note));
    } else if (strncmp(word, "failure:", 8) == 0) {
        Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
        failure.kind = DRARUN_ERR_SPEC;
        failure.text = unconst(rest);
        failure.rank = -1;
        tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(FAILURE, failure, &failure));
    } else if (strcmp(word, "ready") == 0) {
        Drarun__Wire__Ready ready = DRARUN__WIRE__READY__INIT;
        tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(READY, ready, &ready));
    } else if (strcmp(word, "end") == 0) {
        end();
    }
}

static void go_on(void)
{
    while (self.launched && !self.waits && *self.words) {
        if (strcmp(*self.words, "start") == 0 && !self.started)
            return;
        const char *word = *self.words++;
        if (strncmp(word, "sleep:", 6) == 0) {
            const struct timeval pause = {.tv_sec = atoi(word + 6) / 1000,
                                          .tv_usec = atoi(word + 6) % 1000 * 1000};
            self.waits = true;
            event_add(self.asleep, &pause);
        }
        do_word(word);
    }
}

static void on_awake(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    self.waits = false;
    go_on();
}

/* Worker 0 gets the job, and hands it on; the others hear which worker they are. */
static void take_job(uint32_t worker)
{
    self.worker = worker;
    self.launched = true;
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    Drarun__Wire__Pong pong = DRARUN__WIRE__PONG__INIT;
    (void)channel, (void)arg;
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_LAUNCH:
        take_job(message->launch->worker);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_ASSIGNMENT:
        take_job(message->assignment->worker);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_START:
        self.started = true;
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_PING:
        pong.ask = message->ping->ask;
        tell((Drarun__Wire__Envelope)WIRE_ENVELOPE(PONG, pong, &pong));
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_END:
        fprintf(stderr, "told to end\n");
        end();
        break;
    default:
        break;
    }
    go_on();
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
    event_base_loopbreak(self.base);
}

static int accept_one(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    cleanup_close int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (door < 0 || bind(door, (struct sockaddr *)&at, sizeof at) < 0 || listen(door, 1) < 0 ||
        getsockname(door, (struct sockaddr *)&at, &size) < 0)
        return -1;
    printf("listening on port %u\n", ntohs(at.sin_port));
    fflush(stdout);
    return accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int main(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct tls_key key;
    const struct timeval limit = {.tv_sec = TIME_LIMIT_S};
    if (argc < 3 || key_file_read(argv[1], &key, &err) < 0)
        return 1;
    self.host = argv[2];
    self.words = argv + 3;
    self.base = event_base_new();
    self.asleep = evtimer_new(self.base, on_awake, NULL);
    struct tls_context *tls = tls_context_new(&key, TLS_SERVER, &err);
    alarm(TIME_LIMIT_S);
    int fd = accept_one();
    struct bufferevent *bev = fd < 0 || !tls ? NULL : tls_open_take(tls, self.base, fd, &err);
    self.channel = bev ? channel_from_bufferevent_take(bev, on_message, on_closed, NULL) : NULL;
    if (!self.channel)
        return 1;
    say_hello();
    event_base_loopexit(self.base, &limit);
    event_base_dispatch(self.base);
    channel_free(self.channel);
    tls_context_free(tls);
    event_free(self.asleep);
    event_base_free(self.base);
    return 0;
}
