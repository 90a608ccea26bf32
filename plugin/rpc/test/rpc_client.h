/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a gRPC client of a server in the same loop. Every function fails the test itself. */
#ifndef DRARUN_PLUGIN_RPC_TEST_CLIENT_H
#define DRARUN_PLUGIN_RPC_TEST_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/unconst.h"

#define CLIENT_LONG_MS 20000

struct client {
    struct event_base *base;
    int fd;
    nghttp2_session *session;
    bool closed; /* by the server */
};

struct request { /* NULL: as gRPC has it */
    const char *path, *method, *type;
    const void *body;
    size_t length;
    bool open; /* does not end */
};

struct response {
    int32_t stream;
    char status[8], type[32], grpc_status[8], grpc_message[4096];
    struct buf body; /* messages with their prefixes */
    const struct request *request;
    size_t sent;
    bool closed;
    uint32_t error; /* of the stream's end */
};

static int client_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                            const uint8_t *name, size_t name_length, const uint8_t *value,
                            size_t length, uint8_t flags, void *arg)
{
    struct response *r = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const struct {
        const char *name;
        char *to;
        size_t size;
    } known[] = {{":status", r->status, sizeof r->status},
                 {"content-type", r->type, sizeof r->type},
                 {"grpc-status", r->grpc_status, sizeof r->grpc_status},
                 {"grpc-message", r->grpc_message, sizeof r->grpc_message}};
    (void)flags, (void)arg;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == name_length && !memcmp(known[i].name, name, name_length))
            snprintf(known[i].to, known[i].size, "%.*s", (int)length, (const char *)value);
    return 0;
}

static int client_on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                          const uint8_t *data, size_t length, void *arg)
{
    struct response *r = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)arg;
    buf_add(&r->body, data, length);
    return 0;
}

static int client_on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
    struct response *r = nghttp2_session_get_stream_user_data(session, stream);
    (void)arg;
    r->closed = true;
    r->error = error;
    return 0;
}

static ssize_t client_read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                                uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct response *r = source->ptr;
    size_t left = r->request->length - r->sent, n = left < size ? left : size;
    (void)session, (void)stream, (void)arg;
    if (left == 0 && r->request->open)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(to, (const char *)r->request->body + r->sent, n);
    r->sent += n;
    if (r->sent == r->request->length && !r->request->open)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static int client_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void client_init(struct client *c, struct event_base *base, const char *path)
{
    nghttp2_session_callbacks *callbacks;
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    *c = (struct client){.base = base, .fd = client_connect(path)};
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, client_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client_on_close);
    assert_int_equal(nghttp2_session_client_new(&c->session, callbacks, c), 0);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void client_done(struct client *c)
{
    if (c->session)
        nghttp2_session_del(c->session);
    if (c->fd >= 0)
        close(c->fd);
    c->session = NULL;
    c->fd = -1;
}

/* One turn of both sides; whether anything was sent or received here. */
static bool client_turn(struct client *c)
{
    const uint8_t *data;
    uint8_t in[16384];
    ssize_t n, sent = 0;
    bool moved = false;
    while (!c->closed && (n = nghttp2_session_mem_send(c->session, &data)) > 0)
        for (ssize_t at = 0; at < n && !c->closed; at += sent > 0 ? sent : 0) {
            sent = send(c->fd, data + at, (size_t)(n - at), MSG_NOSIGNAL);
            moved = true;
            if (sent < 0 && errno != EAGAIN)
                c->closed = true;
            event_base_loop(c->base, EVLOOP_NONBLOCK);
        }
    event_base_loop(c->base, EVLOOP_NONBLOCK);
    while (!c->closed && (n = recv(c->fd, in, sizeof in, 0)) != -1) {
        moved = true;
        if (n == 0)
            c->closed = true;
        else
            assert_true(nghttp2_session_mem_recv(c->session, in, (size_t)n) == n);
    }
    if (!c->closed && errno != EAGAIN)
        c->closed = true;
    return moved;
}

/* Until nothing moves any more. */
static void client_settle(struct client *c)
{
    for (int still = 0; still < 3;)
        still = client_turn(c) ? 0 : still + 1;
}

/* The response and the request live until the stream is closed. */
static void client_send(struct client *c, const struct request *request, struct response *r)
{
    const char *method = request->method ? request->method : "POST",
               *type = request->type ? request->type : "application/grpc";
#define CLIENT_HEADER(key, text)                                                                   \
    {                                                                                              \
        unconst(key), unconst(text), strlen(key), strlen(text), NGHTTP2_NV_FLAG_NONE               \
    }
    const nghttp2_nv headers[] = {
        CLIENT_HEADER(":method", method),      CLIENT_HEADER(":scheme", "http"),
        CLIENT_HEADER(":path", request->path), CLIENT_HEADER(":authority", "localhost"),
        CLIENT_HEADER("content-type", type),   CLIENT_HEADER("te", "trailers"),
    };
    const nghttp2_data_provider body = {.source.ptr = r, .read_callback = client_read_body};
    *r = (struct response){.request = request, .body = BUF_INIT};
    r->stream = nghttp2_submit_request(c->session, NULL, headers, 6, &body, r);
    assert_true(r->stream > 0);
    client_settle(c);
}

static void client_await(struct client *c, const struct response *r)
{
    int64_t until = clock_ms() + CLIENT_LONG_MS;
    while (!r->closed && !c->closed) {
        if (!client_turn(c))
            usleep(100);
        assert_true(clock_ms() < until);
    }
}

/* A whole call with one message. */
static void client_call(struct client *c, const char *path, const void *message, size_t length,
                        struct response *r)
{
    char *body = calloc(1, length + 5);
    const struct request request = {.path = path, .body = body, .length = length + 5};
    for (int i = 0; i < 4; i++)
        body[1 + i] = (char)(length >> (24 - 8 * i));
    memcpy(body + 5, message, length);
    client_send(c, &request, r);
    client_await(c, r);
    free(body);
}

/* The only message of a response that says that all is well. */
static const void *client_message(const struct response *r, size_t *ret_length)
{
    const uint8_t *data = (const uint8_t *)r->body.data;
    assert_string_equal(r->grpc_status, "0");
    assert_true(r->body.len >= 5);
    *ret_length = (size_t)data[1] << 24 | (size_t)data[2] << 16 | (size_t)data[3] << 8 | data[4];
    assert_int_equal(data[0], 0);
    assert_int_equal(*ret_length, r->body.len - 5);
    return data + 5;
}

#endif
