/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/socket.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/kube/attempt.h"
#include "lib/kube/socket_frames.h"
#include "lib/kube/problem.h"
#include "lib/kube/resource.h"
#include "lib/kube/socket_upgrade.h"

#define OPEN_MS 30000     /* until the command runs, the image's pull not included: the pod runs */
#define CLOSE_CHANNEL 255 /* v5: the byte after it names the channel */
#define PIECE 16384u
#define TURN_MAX (256u * 1024) /* bytes that one turn of the loop reads and hands on */

struct kube_socket {
    struct kube_client *client;
    char *path, *what;
    const char *protocols; /* offered */
    const struct kube_socket_events *events;
    void *arg;
    struct attempt *attempt; /* owns the exchange */
    struct exchange *exchange;
    struct event *readable, *writable, *deadline, *ping;
    struct upgrade upgrade;
    struct upgrade_answer answer;
    struct buf out;   /* what is to be sent: the request, later frames */
    struct buf in;    /* what came with or after the head and is not yet read */
    struct buf inbox; /* whole messages: a length and that many bytes, each */
    struct socket_frames frames;
    bool open;    /* frames go both ways */
    bool at_end;  /* of what the server sends */
    bool sending; /* frames of the owner's */
    bool heard;   /* something has come since the last turn of `ping` */
    bool paused;  /* nothing is read */
    bool *gone;   /* set when a callback frees us */
};

static void socket_end(struct kube_socket *s, struct drarun_error *err)
{
    void (*ended)(const struct drarun_error *err, void *arg) = s->events->ended;
    void *arg = s->arg;
    if (err)
        error_prefix(err, "%s", s->what);
    kube_socket_free(s);
    ended(err, arg);
}

static void socket_lost(struct kube_socket *s)
{
    struct drarun_error err = {0};
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ECONNRESET, "the connection was lost");
    socket_end(s, &err);
}

/* Up to max bytes more into `in`; false: there may be more. */
static bool socket_read(struct kube_socket *s, size_t max)
{
    char piece[PIECE];
    ssize_t n = 1;
    while (max > 0 &&
           (n = exchange_read(s->exchange, piece, max < sizeof piece ? max : sizeof piece)) > 0) {
        buf_add(&s->in, piece, (size_t)n);
        max -= (size_t)n;
        s->heard = true;
    }
    s->at_end = n <= 0 && n != -EAGAIN;
    return n <= 0;
}

/* ---- frames ---- */

/* False: the owner has freed us. */
static bool deliver(struct kube_socket *s)
{
    struct buf inbox = s->inbox;
    bool gone = false;
    size_t length, at = 0;
    s->inbox = (struct buf)BUF_INIT;
    s->gone = &gone;
    for (; !gone && at < inbox.len; at += length) {
        memcpy(&length, inbox.data + at, sizeof length);
        at += sizeof length;
        s->events->data((unsigned char)inbox.data[at], inbox.data + at + 1, length - 1, s->arg);
    }
    buf_done(&inbox);
    if (!gone)
        s->gone = NULL;
    return !gone;
}

static void want_writable(struct kube_socket *s)
{
    if (s->out.len > 0)
        event_add(s->writable, NULL);
}

static void read_frames(struct kube_socket *s)
{
    struct drarun_error err = {0};
    if (s->paused)
        return;
    bool all = socket_read(s, TURN_MAX); /* the rest when this is handed on: we hold no more */
    ssize_t n = socket_frames_read(&s->frames, s->in.data, s->in.len, &s->inbox, &s->out, &err);
    bool whole = !s->in.failed;
    if (!deliver(s))
        return;
    if (n < 0) {
        socket_end(s, &err);
    } else if (s->frames.closed) {
        socket_end(s, NULL);
    } else if (s->at_end || !whole) {
        socket_lost(s);
    } else {
        buf_consume(&s->in, (size_t)n);
        if (!all && !s->paused) /* it may lie in TLS, where the descriptor does not show it */
            event_active(s->readable, EV_READ, 0);
        want_writable(s);
    }
}

/* ---- opening ---- */

/* The server's reason is a Status object, that of a proxy before it any text; the connection may
 * stay. */
static bool read_refusal(struct kube_socket *s)
{
    struct drarun_error err = {0};
    CLEANUP(buf_done) struct buf body = BUF_INIT;
    bool whole = upgrade_read_body(&s->answer, s->in.data, s->in.len, &body);
    json_t *status =
        body.len ? json_loadb(body.data, body.len, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!status && !whole && !s->at_end && s->in.len < UPGRADE_HEAD_MAX)
        return false;
    if (s->answer.status >= 300)
        problem_from_answer(s->answer.status, body.data, body.len, status, &err);
    else
        error_kind(&err, DRARUN_ERR_CLUSTER, EPROTO, "no WebSocket: the server answers %d",
                   s->answer.status);
    json_decref(status);
    socket_end(s, &err);
    return true;
}

/* Not while bytes come, or would: where the command has ended, a server that has closed its side
 * answers ours with a reset, and what it had yet to deliver is lost. */
static void on_ping(evutil_socket_t fd, short what, void *arg)
{
    struct kube_socket *s = arg;
    bool heard = s->heard;
    (void)fd, (void)what;
    s->heard = false;
    if (!heard && !s->paused && s->out.len == 0 && socket_frames_ping(&s->out) == 0)
        want_writable(s);
}

static void opened(struct kube_socket *s)
{
    struct timeval after = timeval_from_ms(s->client->ping_ms);
    bool gone = false;
    event_del(s->deadline);
    event_add(s->ping, &after);
    s->open = true;
    s->gone = &gone;
    s->events->opened(s->arg);
    if (gone)
        return;
    s->gone = NULL;
    read_frames(s);
}

static void read_head(struct kube_socket *s)
{
    struct drarun_error err = {0};
    if (s->in.len < UPGRADE_HEAD_MAX)
        socket_read(s, UPGRADE_HEAD_MAX - s->in.len);
    if (s->answer.status == 0) {
        int rc = upgrade_read(&s->upgrade, s->in.data, s->in.len, &s->answer, &err);
        if (rc < 0) {
            socket_end(s, &err);
            return;
        }
        if (rc == 1)
            buf_consume(&s->in, s->answer.length);
    }
    if (s->answer.status == 101)
        opened(s);
    else if ((s->answer.status == 0 || !read_refusal(s)) && s->at_end)
        socket_lost(s);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct kube_socket *s = arg;
    (void)fd, (void)what;
    if (s->open)
        read_frames(s);
    else
        read_head(s);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct kube_socket *s = arg;
    (void)fd, (void)what;
    ssize_t n = exchange_write(s->exchange, s->out.data, s->out.len);
    if (n < 0 && n != -EAGAIN)
        return; /* reading shows it, with what the server had to say before */
    if (n > 0)
        buf_consume(&s->out, (size_t)n);
    if (s->out.len > 0) {
        want_writable(s);
    } else if (s->sending) {
        s->sending = false;
        if (s->events->drained)
            s->events->drained(s->arg);
    }
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct kube_socket *s = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, "no answer within %d s", OPEN_MS / 1000);
    socket_end(s, &err);
}

static void on_connected(struct exchange *exchange, const struct curl_slist *headers, void *arg)
{
    struct kube_socket *s = arg;
    struct drarun_error err = {0};
    struct event_base *base = s->client->base;
    int fd = exchange_socket(exchange);
    s->exchange = exchange;
    s->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, s);
    s->writable = event_new(base, fd, EV_WRITE, on_writable, s);
    int rc =
        upgrade_request(&s->upgrade, s->client->url, s->path, s->protocols, headers, &s->out, &err);
    if (rc == 0 && (!s->readable || !s->writable || event_add(s->readable, NULL) < 0))
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc < 0)
        socket_end(s, &err);
    else
        want_writable(s);
}

/* Only without a connection. */
static void on_done(const struct exchange_result *result, const struct drarun_error *why, void *arg)
{
    struct kube_socket *s = arg;
    struct drarun_error err = {0};
    s->attempt = NULL;
    if (why)
        err = *why;
    else
        problem_from_curl(result->code, result->text, kube_config_server(s->client->config), &err);
    socket_end(s, &err);
}

struct opening {
    struct kube_target target; /* of a pod */
    struct buf query;
    const char *verb, *protocols;
};

static int open_socket(struct kube_client *client, const struct opening *o,
                       const struct kube_socket_events *events, void *arg,
                       struct kube_socket **ret_socket, struct drarun_error *err)
{
    static const struct attempt_events of_attempt = {.connected = on_connected, .done = on_done};
    CLEANUP(kube_socket_freep) struct kube_socket *s = calloc(1, sizeof *s);
    struct timeval after = timeval_from_ms(OPEN_MS);
    struct buf path = BUF_INIT, what = BUF_INIT;
    if (!s)
        return error_set(err, ENOMEM, "out of memory");
    *s = (struct kube_socket){
        .client = client, .protocols = o->protocols, .events = events, .arg = arg};
    kube_path(&o->target, &path);
    buf_printf(&path, "?%s", o->query.data ? o->query.data : "");
    kube_target_describe(o->verb, &o->target, &what);
    bool whole = !path.failed && !o->query.failed && !what.failed;
    s->path = buf_take(&path);
    s->what = buf_take(&what);
    s->deadline = event_new(client->base, -1, 0, on_deadline, s);
    s->ping = event_new(client->base, -1, EV_PERSIST, on_ping, s);
    if (!whole || !s->path || !s->what || !s->deadline || !s->ping ||
        event_add(s->deadline, &after) < 0)
        return error_set(err, ENOMEM, "out of memory");
    const struct attempt_request request = {
        .method = "GET", .path = s->path, .timeout_ms = OPEN_MS, .connect_only = true};
    int rc = attempt_start(client, &request, &of_attempt, s, &s->attempt, err);
    if (rc == 0)
        *ret_socket = TAKE_PTR(s);
    return rc;
}

int kube_exec_open(struct kube_client *client, const struct kube_exec *exec,
                   const struct kube_socket_events *events, void *arg,
                   struct kube_socket **ret_socket, struct drarun_error *err)
{
    struct opening o = {.target = {.resource = &kube_pods,
                                   .namespace_ = exec->namespace_,
                                   .name = exec->pod,
                                   .subresource = "exec"},
                        .query = BUF_INIT,
                        .verb = "exec in",
                        .protocols = "v5.channel.k8s.io, v4.channel.k8s.io"};
    kube_query_add(&o.query, "container", exec->container);
    for (size_t i = 0; i < exec->command->count; i++)
        kube_query_add(&o.query, "command", exec->command->items[i]);
    kube_query_add(&o.query, "stdin", exec->stdin_ ? "true" : NULL);
    kube_query_add(&o.query, "stdout", "true");
    kube_query_add(&o.query, exec->tty ? "tty" : "stderr", "true");
    int rc = open_socket(client, &o, events, arg, ret_socket, err);
    buf_done(&o.query);
    return rc;
}

int kube_forward_open(struct kube_client *client, const struct kube_forward *forward,
                      const struct kube_socket_events *events, void *arg,
                      struct kube_socket **ret_socket, struct drarun_error *err)
{
    char port[8];
    struct opening o = {.target = {.resource = &kube_pods,
                                   .namespace_ = forward->namespace_,
                                   .name = forward->pod,
                                   .subresource = "portforward"},
                        .query = BUF_INIT,
                        .verb = "forward a port of",
                        .protocols = "v4.channel.k8s.io"};
    snprintf(port, sizeof port, "%u", forward->port);
    kube_query_add(&o.query, "ports", port);
    int rc = open_socket(client, &o, events, arg, ret_socket, err);
    buf_done(&o.query);
    return rc;
}

/* ---- the owner ---- */

static int queue(struct kube_socket *s, const void *message, size_t length)
{
    if (!s->open)
        return -ENOTCONN; /* not open yet */
    int rc = socket_frames_write(message, length, &s->out);
    if (rc < 0)
        return rc;
    s->sending = true;
    want_writable(s);
    return 0;
}

int kube_socket_send(struct kube_socket *socket, unsigned channel, const void *bytes, size_t length)
{
    struct buf message = BUF_INIT;
    buf_add(&message, (const unsigned char[]){(unsigned char)channel}, 1);
    buf_add(&message, bytes, length);
    int rc = message.failed ? -ENOMEM : queue(socket, message.data, message.len);
    buf_done(&message);
    return rc;
}

void kube_socket_pause(struct kube_socket *socket, bool pause)
{
    if (socket->paused == pause)
        return;
    socket->paused = pause;
    if (pause)
        event_del(socket->readable);
    else if (event_add(socket->readable, NULL) == 0)
        event_active(socket->readable, EV_READ, 0); /* it may lie in TLS */
}

int kube_socket_close_channel(struct kube_socket *socket, enum kube_channel channel)
{
    const unsigned char message[] = {CLOSE_CHANNEL, (unsigned char)channel};
    if (strcmp(socket->answer.protocol, "v5.channel.k8s.io") != 0)
        return -ENOTSUP;
    return queue(socket, message, sizeof message);
}

void kube_socket_free(struct kube_socket *socket)
{
    if (!socket)
        return;
    if (socket->gone)
        *socket->gone = true;
    socket_frames_done(&socket->frames);
    if (socket->readable)
        event_free(socket->readable);
    if (socket->writable)
        event_free(socket->writable);
    if (socket->deadline)
        event_free(socket->deadline);
    if (socket->ping)
        event_free(socket->ping);
    attempt_cancel(socket->attempt);
    if (socket->out.data)
        explicit_bzero(socket->out.data, socket->out.cap); /* it has a token */
    buf_done(&socket->out);
    buf_done(&socket->in);
    buf_done(&socket->inbox);
    free(socket->path);
    free(socket->what);
    free(socket);
}
