/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may send over its connection: arbitrary bytes, behind HTTP/2's preface when the
 * first byte says so. Methods answer at once, later, never while the client is there, or stream. */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugin/rpc/rpc_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEPT_MAX 8u

static struct rpc_call *kept[KEPT_MAX];
static size_t kept_count;

static void echo(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    (void)arg;
    rpc_call_answer_take(call, message, length);
}

static void keep(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    (void)message;
    (void)length;
    (void)arg;
    if (kept_count < KEPT_MAX)
        kept[kept_count++] = call;
    else
        rpc_call_fail_take(call, RPC_UNAVAILABLE, "too many");
}

static void on_gone(struct rpc_call *call, void *arg)
{
    (void)arg;
    rpc_call_end_take(call);
}

static void stream(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    (void)arg;
    rpc_call_on_gone(call, on_gone, NULL);
    if (!rpc_call_push(call, message, length))
        rpc_call_end_take(call);
}

static const struct rpc_method methods[] = {
    {"/f/echo", echo, false}, {"/f/keep", keep, false}, {"/f/stream", stream, true}};

static void turn(struct event_base *base)
{
    for (int i = 0; i < 6; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static void answer_kept(void)
{
    while (kept_count > 0)
        rpc_call_answer_take(kept[--kept_count], "later", 5);
}

static void send_all(int fd, const void *data, size_t size)
{
    if (size > 0 && send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return; /* the server has hung up */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    struct event_base *base = event_base_new();
    struct rpc_server *server = NULL;
    int pair[2];
    signal(SIGPIPE, SIG_IGN);
    if (size == 0 || !base ||
        rpc_server_new(base, methods, ARRAY_LEN(methods), NULL, &server, NULL))
        goto out;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        goto out;
    if (rpc_conn_new_take(server, pair[1], NULL) == 0) {
        if (data[0] & 1)
            send_all(pair[0], preface, sizeof preface - 1);
        send_all(pair[0], data + 1, (size - 1) / 2);
        turn(base);
        if (data[0] & 2)
            answer_kept();
        send_all(pair[0], data + 1 + (size - 1) / 2, size - 1 - (size - 1) / 2);
        turn(base);
    }
    close(pair[0]);
    if (data[0] & 4)
        answer_kept();
    turn(base);
    answer_kept();
out:
    rpc_server_free(server);
    answer_kept();
    if (base)
        event_base_free(base);
    return 0;
}
