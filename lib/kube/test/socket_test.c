/* SPDX-License-Identifier: Apache-2.0 */
/* A command's socket: before the API server has opened it, and while nothing is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/kube/base64.h"
#include "lib/kube/client_private.h"
#include "lib/kube/config.h"
#include "lib/kube/socket.h"

/* A server that accepts nobody. */
static int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static int load(uint16_t port, struct kube_config **ret_config, struct drarun_error *err)
{
    char path[] = "/tmp/socket-XXXXXX", text[512];
    int n = snprintf(text, sizeof text,
                     "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                     "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                     "users: [{name: u, user: {}}]\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}]\n",
                     port);
    cleanup_close int fd = mkostemp(path, O_CLOEXEC);
    const struct kube_config_choice choice = {.path = path};
    assert_true(fd >= 0 && write(fd, text, (size_t)n) == n);
    int rc = kube_config_load(&choice, ret_config, err);
    unlink(path);
    return rc;
}

static void never(void *arg)
{
    (void)arg;
    fail();
}

static void no_data(unsigned channel, const char *bytes, size_t length, void *arg)
{
    (void)channel, (void)bytes, (void)length, (void)arg;
    fail();
}

static void no_end(const struct drarun_error *err, void *arg)
{
    (void)err, (void)arg;
    fail();
}

/* As a terminal whose size changes while `drarun exec -t` connects. */
static void size_of_a_terminal_before_it_is_open(void **state)
{
    static const struct kube_socket_events events = {
        .opened = never, .data = no_data, .ended = no_end};
    static const char size[] = "{\"Width\":80,\"Height\":24}";
    struct drarun_error err = {0};
    struct kube_config *config = NULL;
    struct kube_client *client = NULL;
    struct kube_socket *socket = NULL;
    struct strlist command = STRLIST_INIT;
    struct event_base *base = event_base_new();
    uint16_t port = 0;
    cleanup_close int api = listen_anywhere(&port);
    (void)state;
    strlist_add(&command, "sh");
    const struct kube_exec exec = {
        .namespace_ = "default", .pod = "w-0", .container = "c", .command = &command, .tty = true};
    assert_int_equal(load(port, &config, &err), 0);
    assert_int_equal(kube_client_new(base, config, &client, &err), 0);
    assert_int_equal(kube_exec_open(client, &exec, &events, NULL, &socket, &err), 0);
    assert_int_equal(kube_socket_send(socket, KUBE_CHANNEL_RESIZE, size, sizeof size - 1),
                     -ENOTCONN);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(kube_socket_send(socket, KUBE_CHANNEL_RESIZE, size, sizeof size - 1),
                     -ENOTCONN);
    kube_socket_free(socket);
    kube_client_free(client);
    kube_config_free(config);
    strlist_done(&command);
    event_base_free(base);
}

/* ---- a server of WebSockets ---- */

#define PINGS 3u
#define KEY "Sec-WebSocket-Key: "

struct server {
    struct event_base *base;
    struct event *accepting, *reading;
    struct kube_socket *socket; /* of the client */
    char request[4096];
    size_t length;
    unsigned pings;
    int fd;
    const char *refusal; /* instead of an upgrade, on a connection that stays; NULL: none */
    char error[512];     /* of the client's */
    bool upgraded, ended;
};

static void send_all(const struct server *server, const void *bytes, size_t length)
{
    assert_int_equal(send(server->fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* As RFC 6455 §4.2.2 has it. */
static void upgrade(struct server *server)
{
    const char *key = strstr(server->request, KEY) + sizeof KEY - 1;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    struct buf text = BUF_INIT, answer = BUF_INIT;
    buf_printf(&text, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", (int)strcspn(key, "\r"), key);
    assert_int_equal(EVP_Digest(text.data, text.len, digest, &length, EVP_sha1(), NULL), 1);
    buf_add_str(&answer, "HTTP/1.1 101 Switching Protocols\r\n"
                         "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Accept: ");
    base64_encode(digest, length, &answer);
    buf_add_str(&answer, "\r\n\r\n");
    send_all(server, answer.data, answer.len);
    buf_done(&text);
    buf_done(&answer);
    server->upgraded = true;
}

/* Nothing but masked pings without a text, six bytes each, which it answers; the last one with the
 * end of the command. */
static void read_pings(struct server *server)
{
    unsigned char frames[64];
    ssize_t n = read(server->fd, frames, sizeof frames);
    assert_true(n > 0 && n % 6 == 0);
    for (ssize_t i = 0; i < n; i += 6) {
        assert_int_equal(frames[i], 0x89);
        assert_int_equal(frames[i + 1], 0x80);
        server->pings++;
        send_all(server, "\x8a", 2);
    }
    if (server->pings >= PINGS)
        send_all(server, "\x88", 2);
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)what;
    if (server->upgraded) {
        read_pings(server);
        return;
    }
    ssize_t n = read(fd, server->request + server->length, sizeof server->request - server->length);
    assert_true(n > 0 && server->length + (size_t)n < sizeof server->request);
    server->length += (size_t)n;
    if (!strstr(server->request, "\r\n\r\n"))
        return;
    if (server->refusal)
        send_all(server, server->refusal, strlen(server->refusal));
    else
        upgrade(server);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)what;
    server->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server->fd >= 0);
    server->reading = event_new(server->base, server->fd, EV_READ | EV_PERSIST, on_request, server);
    event_add(server->reading, NULL);
}

static void on_opened(void *arg)
{
    (void)arg;
}

static void on_ended(const struct drarun_error *err, void *arg)
{
    struct server *server = arg;
    assert_int_equal(!err, !server->refusal);
    snprintf(server->error, sizeof server->error, "%s", err ? err->text : "");
    server->socket = NULL;
    server->ended = true;
    event_base_loopbreak(server->base);
}

/* A server that does as server says, and a client that opens a socket; until that has ended. */
static void serve(struct server *server, unsigned ping_ms)
{
    static const struct kube_socket_events events = {
        .opened = on_opened, .data = no_data, .ended = on_ended};
    struct drarun_error err = {0};
    struct kube_config *config = NULL;
    struct kube_client *client = NULL;
    struct strlist command = STRLIST_INIT;
    struct timeval limit = {.tv_sec = 60};
    uint16_t port = 0;
    cleanup_close int api = listen_anywhere(&port);
    server->base = event_base_new();
    server->fd = -1;
    server->accepting = event_new(server->base, api, EV_READ, on_accept, server);
    event_add(server->accepting, NULL);
    strlist_add(&command, "sh");
    const struct kube_exec exec = {
        .namespace_ = "default", .pod = "w-0", .container = "c", .command = &command, .tty = true};
    assert_int_equal(load(port, &config, &err), 0);
    assert_int_equal(kube_client_new(server->base, config, &client, &err), 0);
    assert_int_equal(client->ping_ms, KUBE_PING_MS);
    client->ping_ms = ping_ms;
    assert_int_equal(kube_exec_open(client, &exec, &events, server, &server->socket, &err), 0);
    event_base_loopexit(server->base, &limit);
    event_base_dispatch(server->base);
    assert_true(server->ended);
    kube_socket_free(server->socket);
    kube_client_free(client);
    kube_config_free(config);
    strlist_done(&command);
    event_free(server->accepting);
    event_free(server->reading);
    close(server->fd);
    event_base_free(server->base);
}

/* As a shell of `drarun exec -t` at which nobody types, behind a load balancer. */
static void pings_while_nothing_is_said(void **state)
{
    struct server server = {0};
    (void)state;
    serve(&server, 20);
    assert_true(server.pings >= PINGS);
}

/* By the API server, or by what lies before it, on connections that they keep. */
static void refusals(void **state)
{
    static const struct {
        const char *answer, *text;
    } rows[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 58\r\n\r\n"
         "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"not you\"}",
         "403: not you"},
        {"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
         "18\r\n{\"kind\":\"Status\",\"messag\r\nd\r\ne\":\"not you\"}\r\n0\r\n\r\n",
         "403: not you"},
        {"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 57\r\n\r\n"
         "<html><head><title>502 Bad Gateway</title></head></html>\n",
         "502: Bad Gateway"},
        {"HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n"
         "8\r\nno healt\r\n9\r\nhy server\r\n0\r\n\r\n",
         "503: no healthy server"},
        {"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "429"},
        {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", "404"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "no WebSocket: the server answers 200"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct server server = {.refusal = rows[i].answer};
        char text[512];
        serve(&server, KUBE_PING_MS);
        snprintf(text, sizeof text, "exec in pods/exec \"w-0\" in namespace default: %s",
                 rows[i].text);
        assert_string_equal(server.error, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_of_a_terminal_before_it_is_open),
        cmocka_unit_test(pings_while_nothing_is_said),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
