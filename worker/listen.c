/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/hello.h"
#include "worker/pmix/host.h"

#define HELLO_DEADLINE_MS 10000
#define GUESTS_MAX 1024u

/* A connection that has not said hello yet. */
struct guest {
    LIST_ENTRY(guest) entry;
    struct listen_door *door;
    struct channel *channel;
    struct event *deadline;
};

struct listen_door {
    struct event_base *base;
    int fd;
    struct event *event;
    struct tls_context *tls;
    listen_hello_fn on_hello;
    void *arg;
    size_t guests_count;
    LIST_HEAD(, guest) guests;
};

/* The channel stays open when it was taken out before. */
static void guest_free(struct guest *guest)
{
    LIST_REMOVE(guest, entry);
    guest->door->guests_count--;
    channel_free(guest->channel);
    if (guest->deadline)
        event_free(guest->deadline);
    free(guest);
}

static void free_channel(void *arg)
{
    channel_free(arg);
}

static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void ignore_close(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)err, (void)arg;
    channel_free(channel);
}

void listen_refuse_take(struct channel *channel, const char *why, int code)
{
    Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
    failure.kind = DRARUN_ERR_INFRASTRUCTURE;
    failure.code = code;
    failure.rank = -1;
    failure.text = (char *)why;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FAILURE, failure, &failure);
    channel_send(channel, &envelope);
    channel_set_callbacks(channel, ignore_message, ignore_close, NULL);
    channel_on_drained(channel, free_channel, channel);
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct guest *guest = arg;
    struct listen_door *door = guest->door;
    struct drarun_error err = {0};
    guest->channel = NULL; /* from here on it is ours or the callee's */
    guest_free(guest);
    int rc = 0;
    if (message->body_case != DRARUN__WIRE__ENVELOPE__BODY_HELLO)
        rc = error_set(&err, EPROTO, "the first message is no hello");
    else
        rc = hello_check(message->hello, pmix_host_version(), &err);
    if (rc < 0) {
        log_error("%s refused: %s", channel_peer(channel), err.text);
        listen_refuse_take(channel, err.text, err.code);
        return;
    }
    door->on_hello(channel, message->hello, door->arg);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    if (err->code != 0)
        log_error("%s refused: %s%s", channel_peer(channel), err->text,
                  err->code == EACCES ? " (does it hold this job's key?)" : "");
    guest_free(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct guest *guest = arg;
    (void)fd, (void)what;
    log_error("%s refused: no hello within %d s", channel_peer(guest->channel),
              HELLO_DEADLINE_MS / 1000);
    guest_free(guest);
}

static void welcome_take(struct listen_door *door, int fd)
{
    struct drarun_error err = {0};
    struct timeval limit = timeval_from_ms(HELLO_DEADLINE_MS);
    struct guest *guest = calloc(1, sizeof *guest);
    if (!guest) {
        close(fd);
        return;
    }
    guest->door = door;
    LIST_INSERT_HEAD(&door->guests, guest, entry);
    door->guests_count++;
    struct bufferevent *bev = tls_open_take(door->tls, door->base, fd, &err);
    if (bev)
        guest->channel = channel_from_bufferevent_take(bev, on_message, on_closed, guest);
    guest->deadline = evtimer_new(door->base, on_deadline, guest);
    if (!guest->channel || !guest->deadline || evtimer_add(guest->deadline, &limit) < 0) {
        log_error("a connection could not be opened: %s", err.code ? err.text : "out of memory");
        guest_free(guest);
        return;
    }
    channel_set_explain(guest->channel, tls_failure);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    struct listen_door *door = arg;
    (void)what;
    for (;;) {
        int guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (guest < 0)
            return;
        if (door->guests_count < GUESTS_MAX) {
            welcome_take(door, guest);
        } else {
            log_error("a connection is refused: %u wait without a hello", GUESTS_MAX);
            close(guest);
        }
    }
}

struct listen_door *listen_open_take(struct event_base *base, int fd, const struct tls_key *key,
                                     listen_hello_fn on_hello, void *arg, struct drarun_error *err)
{
    struct listen_door *door = calloc(1, sizeof *door);
    if (!door) {
        close(fd);
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *door = (struct listen_door){.base = base, .fd = fd, .on_hello = on_hello, .arg = arg};
    LIST_INIT(&door->guests);
    door->tls = tls_context_new(key, TLS_SERVER, err);
    evutil_make_socket_nonblocking(fd);
    door->event = event_new(base, fd, EV_READ | EV_PERSIST, on_acceptable, door);
    if (!door->tls || !door->event || event_add(door->event, NULL) < 0) {
        if (door->tls)
            error_set(err, ENOMEM, "out of memory");
        listen_close(door);
        return NULL;
    }
    return door;
}

void listen_close(struct listen_door *door)
{
    if (!door)
        return;
    while (!LIST_EMPTY(&door->guests))
        guest_free(LIST_FIRST(&door->guests));
    if (door->event)
        event_free(door->event);
    close_fd(&door->fd);
    tls_context_free(door->tls);
    free(door);
}
