/* SPDX-License-Identifier: Apache-2.0 */
/* One client's HTTP/2 connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <event2/buffer.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "plugin/rpc/rpc_private.h"

#define UNSENT_MAX                                                                                 \
    ((size_t)256 << 10)    /* bytes taken from nghttp2 before the client has read some */
#define HEADERS_MAX 16384u /* bytes of a request's */

static bool is(const uint8_t *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static struct rpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct rpc_conn *conn = arg;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct rpc_call *call = calloc(1, sizeof *call);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    call->conn = conn;
    call->stream = frame->hd.stream_id;
    call->next = conn->calls;
    conn->calls = call;
    nghttp2_session_set_stream_user_data(session, call->stream, call);
    return 0;
}

static const struct rpc_method *find_method(const struct rpc_server *server, const uint8_t *path,
                                            size_t length)
{
    for (size_t i = 0; i < server->method_count; i++)
        if (is(path, length, server->methods[i].path))
            return &server->methods[i];
    return NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t length, uint8_t flags,
                     void *arg)
{
    static const char grpc[] = "application/grpc"; /* and "+proto" */
    struct rpc_conn *conn = arg;
    struct rpc_call *call = call_of(session, frame->hd.stream_id);
    (void)flags;
    if (!call || call->answered || call->held)
        return 0;
    if (is(name, name_length, ":path"))
        call->method = find_method(conn->server, value, length);
    else if (is(name, name_length, ":method"))
        call->post = is(value, length, "POST");
    else if (is(name, name_length, "content-type"))
        call->grpc = length >= sizeof grpc - 1 && memcmp(value, grpc, sizeof grpc - 1) == 0;
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t length, void *arg)
{
    struct rpc_conn *conn = arg;
    struct rpc_call *call = call_of(session, stream);
    (void)flags;
    if (!call || call->answered || call->held)
        return 0;
    if (call->in.len + length > RPC_MESSAGE_MAX + RPC_PREFIX) {
        rpc_call_refuse(call, RPC_RESOURCE_EXHAUSTED, "the request is larger than 4 MiB");
        return 0;
    }
    if (conn->server->pending + length > RPC_REQUESTS_MAX) {
        rpc_call_refuse(call, RPC_RESOURCE_EXHAUSTED, "too many large requests at a time");
        return 0;
    }
    size_t before = call->in.len;
    buf_add(&call->in, data, length);
    conn->server->pending += call->in.len - before;
    if (call->in.failed)
        rpc_call_refuse(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
    return 0;
}

/* What is no gRPC gets an answer of HTTP. */
static int refuse_type(struct rpc_call *call)
{
    const nghttp2_nv status = {unconst(":status"), unconst("415"), 7, 3, NGHTTP2_NV_FLAG_NONE};
    call->answered = true;
    return nghttp2_submit_response(call->conn->session, call->stream, &status, 1, NULL) == 0
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)arg;
    if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct rpc_call *call = call_of(session, frame->hd.stream_id);
    if (!call)
        return 0;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        call->whole = true;
    if (call->held || call->answered)
        return 0;
    if (!call->post || !call->grpc)
        return refuse_type(call);
    if (!call->method)
        rpc_call_refuse(call, RPC_UNIMPLEMENTED, "unknown method");
    else if (call->whole)
        rpc_call_run(call);
    return 0;
}

/* An answer that ends before its request does: the rest of that is given up (RFC 9113 8.1). grpc-go
 * drops what it has queued without ending the stream, which would count against the limit until the
 * connection ends.
 */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)arg;
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    struct rpc_call *call = call_of(session, frame->hd.stream_id);
    if (call && !call->whole)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
    struct rpc_call *call = call_of(session, stream);
    (void)error;
    (void)arg;
    if (call) {
        nghttp2_session_set_stream_user_data(session, stream, NULL);
        rpc_call_detach(call);
    }
    return 0;
}

static void send_some(struct rpc_conn *conn)
{
    struct evbuffer *out = bufferevent_get_output(conn->bev);
    const uint8_t *data;
    ssize_t n = 0;
    while (evbuffer_get_length(out) < UNSENT_MAX &&
           (n = nghttp2_session_mem_send(conn->session, &data)) > 0)
        if (evbuffer_add(out, data, (size_t)n) < 0)
            n = NGHTTP2_ERR_NOMEM;
    if (n < 0)
        conn->broken = true;
}

void rpc_conn_flush(struct rpc_conn *conn)
{
    if (conn->busy)
        return;
    conn->busy = true;
    send_some(conn);
    conn->busy = false;
    bool over = !nghttp2_session_want_read(conn->session) &&
                !nghttp2_session_want_write(conn->session) &&
                evbuffer_get_length(bufferevent_get_output(conn->bev)) == 0;
    if (conn->broken || over)
        rpc_conn_free(conn);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct rpc_conn *conn = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    size_t length = evbuffer_get_contiguous_space(in);
    conn->busy = true;
    while (length > 0 && !conn->broken) {
        ssize_t n = nghttp2_session_mem_recv(conn->session, evbuffer_pullup(in, (ev_ssize_t)length),
                                             length);
        if (n < 0)
            conn->broken = true;
        else
            evbuffer_drain(in, (size_t)n);
        length = evbuffer_get_contiguous_space(in);
    }
    conn->busy = false;
    rpc_conn_flush(conn);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    rpc_conn_flush(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    (void)what;
    rpc_conn_free(arg);
}

static int new_session(struct rpc_conn *conn)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, RPC_STREAMS_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_MAX},
    };
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int rc = nghttp2_session_server_new(&conn->session, callbacks, conn);
    nghttp2_session_callbacks_del(callbacks);
    if (rc == 0)
        rc = nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
                                     ARRAY_LEN(settings));
    return rc == 0 ? 0 : -ENOMEM;
}

int rpc_conn_new_take(struct rpc_server *server, int fd, struct drarun_error *err)
{
    struct rpc_conn *conn = calloc(1, sizeof *conn);
    struct bufferevent *bev =
        conn ? bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev || new_session(conn) < 0) {
        if (bev)
            bufferevent_free(bev);
        else
            close(fd);
        if (conn)
            nghttp2_session_del(conn->session);
        free(conn);
        return error_set(err, ENOMEM, "out of memory for a connection");
    }
    conn->server = server;
    conn->bev = bev;
    conn->next = server->conns;
    server->conns = conn;
    server->conn_count++;
    bufferevent_setcb(bev, on_read, on_write, on_event, conn);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    rpc_conn_flush(conn);
    return 0;
}

void rpc_conn_free(struct rpc_conn *conn)
{
    if (conn->busy) { /* by a handler's doing */
        conn->broken = true;
        return;
    }
    for (struct rpc_conn **p = &conn->server->conns; *p; p = &(*p)->next) {
        if (*p == conn) {
            *p = conn->next;
            break;
        }
    }
    conn->server->conn_count--;
    conn->busy = true; /* what is answered now goes nowhere */
    while (conn->calls)
        rpc_call_detach(conn->calls);
    nghttp2_session_del(conn->session);
    bufferevent_free(conn->bev);
    free(conn);
}
