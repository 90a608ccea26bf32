/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher by hand: wire_caller ADDR:PORT KEY-FILE JOB ATTEMPT WORKER GENERATION [PATH...]
 * says hello (asking for PATHs in the inspection), prints a line for each message, and sends what
 * lines on stdin say: "end". Leaves when the agent closes ("closed WHY"), or at the end of stdin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/wire/channel.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "lib/wire/key_file.h"
#include "lib/wire/tls.h"

#define TIME_LIMIT_S 60

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)arg;
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_HELLO:
        printf("hello launched=%d job=%s\n", message->hello->launched, message->hello->job);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_INSPECTION:
        printf("inspection %s\n", message->inspection->document);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_FAILURE:
        printf("failure %d %s\n", message->failure->code, message->failure->text);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_EVICTED:
        printf("evicted %s\n", message->evicted->reason);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_DONE:
        printf("done\n");
        break;
    default:
        printf("message %d\n", message->body_case);
    }
    fflush(stdout);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel;
    printf("closed %s\n", err->text);
    fflush(stdout);
    event_base_loopbreak(arg);
}

static void on_stdin(evutil_socket_t fd, short what, void *arg)
{
    struct channel *channel = arg;
    char text[64];
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)what;
    if (n <= 0)
        _exit(0);
    text[n] = '\0';
    if (strncmp(text, "end", 3) != 0)
        return;
    Drarun__Wire__End end = DRARUN__WIRE__END__INIT;
    end.reason = (char *)"told to";
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(END, end, &end);
    channel_send(channel, &envelope);
}

static void say_hello(struct channel *channel, int argc, char **argv)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_LAUNCHER, "");
    hello.job = argv[3];
    hello.attempt = (uint32_t)strtoul(argv[4], NULL, 10);
    hello.worker = (uint32_t)strtoul(argv[5], NULL, 10);
    hello.generation = strtoull(argv[6], NULL, 10);
    hello.look_for = argv + 7;
    hello.n_look_for = (size_t)(argc - 7);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &hello);
    channel_send(channel, &envelope);
}

int main(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct tls_key key;
    int fd = -1;
    if (argc < 7 || key_file_read(argv[2], &key, &err) < 0 || dial_start(argv[1], &fd, &err) < 0) {
        fprintf(stderr, "wire_caller: %s\n", argc < 7 ? "too few arguments" : err.text);
        return 64;
    }
    alarm(TIME_LIMIT_S);
    struct event_base *base = event_base_new();
    struct tls_context *tls = tls_context_new(&key, TLS_CLIENT, &err);
    struct bufferevent *bev = tls ? tls_open_take(tls, base, fd, &err) : NULL;
    struct channel *channel =
        bev ? channel_from_bufferevent_take(bev, on_message, on_closed, base) : NULL;
    if (!channel)
        return 70;
    channel_set_explain(channel, tls_failure);
    say_hello(channel, argc, argv);
    struct event *input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, channel);
    event_add(input, NULL);
    event_base_dispatch(base);
    event_free(input);
    channel_free(channel);
    tls_context_free(tls);
    event_base_free(base);
    return 0;
}
