/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/rpc/rpc_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/unconst.h"
#include "plugin/rpc/rpc_private.h"

#define TEXT_MAX 2048u /* of a status; the kubelet puts it into an event, which takes 1,024 */

#define HEADER(key, text, size)                                                                    \
    (nghttp2_nv)                                                                                   \
    {                                                                                              \
        unconst(key), unconst(text), sizeof(key) - 1, (size), NGHTTP2_NV_FLAG_NONE                 \
    }
#define FIXED(key, text) HEADER(key, text, sizeof(text) - 1)

static void call_free(struct rpc_call *call)
{
    buf_done(&call->in);
    buf_done(&call->out);
    free(call);
}

/* nghttp2 asks for the body of a response. Messages go out whole, then the status as a trailer. */
static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct rpc_call *call = source->ptr;
    (void)arg;
    size_t n = call->out.len - call->sent;
    n = n < size ? n : size;
    if (n > 0)
        memcpy(to, call->out.data + call->sent, n);
    call->sent += n;
    if (call->sent < call->out.len)
        return (ssize_t)n;
    if (!call->ended)
        return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
    const nghttp2_nv trailer = FIXED("grpc-status", "0");
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return nghttp2_submit_trailer(session, stream, &trailer, 1) == 0
               ? (ssize_t)n
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void respond(struct rpc_call *call)
{
    const nghttp2_nv headers[] = {FIXED(":status", "200"),
                                  FIXED("content-type", "application/grpc")};
    const nghttp2_data_provider body = {.source.ptr = call, .read_callback = read_body};
    call->answered = true;
    if (nghttp2_submit_response(call->conn->session, call->stream, headers, 2, &body) != 0)
        call->conn->broken = true;
}

/* A response without messages has its status in the header ("Trailers-Only"). */
static void respond_status(struct rpc_call *call, enum rpc_status status, const char *text)
{
    struct buf escaped = BUF_INIT;
    char code[12];
    int width = snprintf(code, sizeof code, "%d", (int)status);
    rpc_message_escape(&escaped, text);
    const nghttp2_nv headers[] = {
        FIXED(":status", "200"), FIXED("content-type", "application/grpc"),
        HEADER("grpc-status", code, (size_t)width),
        HEADER("grpc-message", escaped.data ? escaped.data : "", escaped.len)};
    call->answered = true;
    if (nghttp2_submit_response(call->conn->session, call->stream, headers, 4, NULL) != 0)
        call->conn->broken = true;
    buf_done(&escaped);
}

void rpc_call_refuse(struct rpc_call *call, enum rpc_status status, const char *why)
{
    if (!call->held && !call->answered)
        respond_status(call, status, why);
}

void rpc_call_run(struct rpc_call *call)
{
    const uint8_t *message = NULL;
    size_t length = 0;
    const char *why = NULL;
    enum rpc_status status =
        rpc_message_open((const uint8_t *)call->in.data, call->in.len, &message, &length, &why);
    if (status != RPC_OK) {
        rpc_call_refuse(call, status, why);
        return;
    }
    struct buf in = call->in; /* the handler may answer, and so free the call, at once */
    call->in = (struct buf)BUF_INIT;
    call->conn->server->pending -= in.len;
    call->held = true;
    call->method->fn(call, message, length, call->conn->server->arg);
    buf_done(&in);
}

/* The holder gives the call back: it lives on as long as its stream. */
static void give_back(struct rpc_call *call)
{
    struct rpc_conn *conn = call->conn;
    call->held = false;
    call->gone = NULL;
    if (conn)
        rpc_conn_flush(conn);
    else
        call_free(call);
}

void rpc_call_answer_take(struct rpc_call *call, const void *message, size_t length)
{
    if (call->conn) {
        rpc_message_add(&call->out, message, length);
        call->ended = true;
        if (call->out.failed || length > RPC_MESSAGE_MAX)
            respond_status(call, RPC_RESOURCE_EXHAUSTED, "the answer is too large");
        else
            respond(call);
    }
    give_back(call);
}

void rpc_call_fail_take(struct rpc_call *call, enum rpc_status status, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (call->conn)
        respond_status(call, status, text);
    give_back(call);
}

void rpc_call_end_take(struct rpc_call *call)
{
    call->ended = true;
    if (call->conn && !call->answered)
        respond(call);
    else if (call->conn)
        nghttp2_session_resume_data(call->conn->session, call->stream);
    give_back(call);
}

bool rpc_call_push(struct rpc_call *call, const void *message, size_t length)
{
    struct rpc_conn *conn = call->conn;
    if (!conn || call->out.len - call->sent + length > RPC_PUSHED_MAX)
        return false;
    buf_consume(&call->out, call->sent);
    call->sent = 0;
    rpc_message_add(&call->out, message, length);
    if (call->out.failed)
        return false;
    if (call->answered)
        nghttp2_session_resume_data(conn->session, call->stream);
    else
        respond(call);
    rpc_conn_flush(conn);
    return true;
}

bool rpc_call_gone(const struct rpc_call *call)
{
    return !call->conn;
}

void rpc_call_on_gone(struct rpc_call *call, void (*fn)(struct rpc_call *call, void *arg),
                      void *arg)
{
    call->gone = fn;
    call->gone_arg = arg;
}

void rpc_call_detach(struct rpc_call *call)
{
    for (struct rpc_call **p = &call->conn->calls; *p; p = &(*p)->next) {
        if (*p == call) {
            *p = call->next;
            break;
        }
    }
    call->conn->server->pending -= call->in.len;
    call->conn = NULL;
    if (!call->held) {
        call_free(call);
        return;
    }
    buf_reset(&call->in);
    if (call->gone) {
        void (*fn)(struct rpc_call *, void *) = call->gone;
        call->gone = NULL;
        fn(call, call->gone_arg);
    }
}
