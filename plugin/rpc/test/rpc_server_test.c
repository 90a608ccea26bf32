/* SPDX-License-Identifier: Apache-2.0 */
/* A server and its clients in one loop, over sockets. */
#include "plugin/rpc/test/rpc_client.h"

#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "plugin/rpc/rpc_server.h"

#define MIB ((size_t)1 << 20)

struct world {
    struct event_base *base;
    struct rpc_server *server;
    char dir[32], path[64];
    struct rpc_call *held[2];
    unsigned held_count, gone;
    struct client client;
};

/* ---- the methods ---- */

static void echo(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    (void)arg;
    rpc_call_answer_take(call, message, length);
}

static void hold(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    struct world *w = arg;
    (void)message, (void)length;
    assert_true(w->held_count < ARRAY_LEN(w->held));
    w->held[w->held_count++] = call;
}

static void refuse(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    (void)arg;
    rpc_call_fail_take(call, RPC_UNAVAILABLE, "100 %% of %.*s", (int)length, message);
}

static void too_large(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    cleanup_free char *answer = calloc(1, RPC_MESSAGE_MAX + 1);
    (void)message, (void)arg;
    rpc_call_answer_take(call, answer, RPC_MESSAGE_MAX + length);
}

static const struct rpc_method methods[] = {{"/t.T/Echo", echo, false},
                                            {"/t.T/Hold", hold, false},
                                            {"/t.T/Fail", refuse, false},
                                            {"/t.T/TooLarge", too_large, false},
                                            {"/t.T/Stream", hold, true}};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct drarun_error err = {0};
    *state = w;
    snprintf(w->dir, sizeof w->dir, "/tmp/rpc_test.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->path, sizeof w->path, "%s/t.sock", w->dir);
    w->base = event_base_new();
    assert_int_equal(rpc_server_new(w->base, methods, ARRAY_LEN(methods), w, &w->server, &err), 0);
    if (rpc_server_listen(w->server, w->path, &err) < 0)
        fail_msg("%s", err.text);
    client_init(&w->client, w->base, w->path);
    return 0;
}

static int take_down(void **state)
{
    struct world *w = *state;
    client_done(&w->client);
    rpc_server_free(w->server);
    event_base_free(w->base);
    tree_remove(AT_FDCWD, w->dir);
    free(w);
    return 0;
}

static void check_status(const struct response *r, const char *status, const char *message)
{
    assert_true(r->closed);
    assert_string_equal(r->status, "200");
    assert_string_equal(r->type, "application/grpc");
    assert_string_equal(r->grpc_status, status);
    assert_string_equal(r->grpc_message, message);
}

/* ---- calls of one message ---- */

static void a_call_is_answered(void **state)
{
    struct world *w = *state;
    static const size_t lengths[] = {0, 1, 300, 70000, RPC_MESSAGE_MAX};
    cleanup_free char *message = calloc(1, RPC_MESSAGE_MAX);
    for (size_t i = 0; i < RPC_MESSAGE_MAX; i++)
        message[i] = (char)(i * 7 + i / 255);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct response r;
        size_t length;
        client_call(&w->client, "/t.T/Echo", message, lengths[i], &r);
        check_status(&r, "0", "");
        const void *answer = client_message(&r, &length);
        assert_int_equal(length, lengths[i]);
        assert_memory_equal(answer, message, length);
        assert_int_equal(r.error, NGHTTP2_NO_ERROR);
        buf_done(&r.body);
    }
}

static void what_is_no_call_is_refused(void **state)
{
    struct world *w = *state;
    static const struct {
        struct request request;
        const char *http, *status, *message;
    } rows[] = {
        {{"/t.T/None", NULL, NULL, "\0\0\0\0\0", 5}, "200", "12", "unknown method"},
        {{"/t.T/Ech", NULL, NULL, "\0\0\0\0\0", 5}, "200", "12", "unknown method"},
        {{"/t.T/Echo", "PUT", NULL, "\0\0\0\0\0", 5}, "415", "", ""},
        {{"/t.T/Echo", NULL, "application/grp", "\0\0\0\0\0", 5}, "415", "", ""},
        {{"/t.T/Echo", NULL, "application/json", "\0\0\0\0\0", 5}, "415", "", ""},
        {{"/t.T/Echo", NULL, "application/grpc+proto", "\0\0\0\0\0", 5}, "200", "0", ""},
        {{"/t.T/Echo", NULL, NULL, "", 0}, "200", "13", "the request has no message"},
        {{"/t.T/Echo", NULL, NULL, "\0\0\0\0\1", 5},
         "200",
         "13",
         "the request is not exactly one message"},
        {{"/t.T/Echo", NULL, NULL, "\1\0\0\0\0", 5},
         "200",
         "12",
         "compressed requests are not supported"},
        {{"/t.T/Fail", NULL, NULL, "\0\0\0\0\2a\n", 7}, "200", "14", "100 %25 of a%0A"},
        {{"/t.T/TooLarge", NULL, NULL, "\0\0\0\0\1a", 6}, "200", "8", "the answer is too large"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct response r;
        client_send(&w->client, &rows[i].request, &r);
        client_await(&w->client, &r);
        if (strcmp(r.status, rows[i].http) != 0 || strcmp(r.grpc_status, rows[i].status) != 0 ||
            strcmp(r.grpc_message, rows[i].message) != 0)
            fail_msg("row %zu: %s, %s: %s", i, r.status, r.grpc_status, r.grpc_message);
        buf_done(&r.body);
    }
}

/* An answer that ends before its request does gives up the rest of that. */
static void unfinished_request_is_given_up(void **state)
{
    struct world *w = *state;
    static const struct request request = {"/t.T/None", NULL, NULL, "\0\0\0\0\7", 5, true};
    struct response r;
    client_send(&w->client, &request, &r);
    client_await(&w->client, &r);
    check_status(&r, "12", "unknown method");
    assert_int_equal(r.error, NGHTTP2_NO_ERROR);
    assert_false(w->client.closed);
}

static void one_that_waits_holds_up_no_other(void **state)
{
    struct world *w = *state;
    static const struct request request = {"/t.T/Hold", NULL, NULL, "\0\0\0\0\0", 5};
    struct response first, second, third;
    client_send(&w->client, &request, &first);
    client_send(&w->client, &request, &second);
    client_call(&w->client, "/t.T/Echo", "abc", 3, &third);
    check_status(&third, "0", "");
    assert_int_equal(w->held_count, 2);
    assert_false(first.closed || second.closed);
    assert_false(rpc_call_gone(w->held[0]));
    rpc_call_answer_take(w->held[1], "two", 3);
    client_await(&w->client, &second);
    assert_memory_equal(second.body.data, "\0\0\0\0\3two", 8);
    assert_false(first.closed);
    rpc_call_fail_take(w->held[0], RPC_INVALID_ARGUMENT, "no");
    client_await(&w->client, &first);
    check_status(&first, "3", "no");
    buf_done(&second.body);
    buf_done(&third.body);
}

static void large_requests_are_limited(void **state)
{
    struct world *w = *state;
    cleanup_free char *body = calloc(1, RPC_MESSAGE_MAX + 6);
    const struct request whole = {"/t.T/Echo", NULL, NULL, body, RPC_MESSAGE_MAX + 5, true},
                         larger = {"/t.T/Echo", NULL, NULL, body, RPC_MESSAGE_MAX + 6, true},
                         rest = {"/t.T/Echo",
                                 NULL,
                                 NULL,
                                 body,
                                 RPC_REQUESTS_MAX - 7 * (RPC_MESSAGE_MAX + 5),
                                 true},
                         one = {"/t.T/Echo", NULL, NULL, body, 1, true};
    struct response open[8], r;
    client_send(&w->client, &larger, &r);
    client_await(&w->client, &r);
    check_status(&r, "8", "the request is larger than 4 MiB");
    for (int i = 0; i < 7; i++)
        client_send(&w->client, &whole, &open[i]);
    client_send(&w->client, &rest, &open[7]);
    for (int i = 0; i < 8; i++)
        assert_false(open[i].closed);
    client_send(&w->client, &one, &r);
    client_await(&w->client, &r);
    check_status(&r, "8", "too many large requests at a time");
    nghttp2_submit_rst_stream(w->client.session, 0, open[0].stream, NGHTTP2_CANCEL);
    client_settle(&w->client);
    client_send(&w->client, &one, &r); /* there is room again */
    assert_false(r.closed);
}

static void limits_are_announced(void **state)
{
    struct world *w = *state;
    client_settle(&w->client);
    assert_int_equal(nghttp2_session_get_remote_settings(w->client.session,
                                                         NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
                     RPC_STREAMS_MAX);
    assert_int_equal(nghttp2_session_get_remote_settings(w->client.session,
                                                         NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE),
                     16384);
}

/* ---- streams ---- */

static void stream_is_pushed_to_until_it_ends(void **state)
{
    struct world *w = *state;
    static const struct request request = {"/t.T/Stream", NULL, NULL, "\0\0\0\0\0", 5};
    struct response r;
    client_send(&w->client, &request, &r);
    assert_int_equal(w->held_count, 1);
    assert_string_equal(r.status, "");
    assert_true(rpc_call_push(w->held[0], "one", 3));
    client_settle(&w->client);
    assert_int_equal(r.body.len, 8);
    assert_true(rpc_call_push(w->held[0], "four", 4));
    assert_true(rpc_call_push(w->held[0], "", 0));
    client_settle(&w->client);
    assert_int_equal(r.body.len, 22);
    assert_memory_equal(r.body.data, "\0\0\0\0\3one\0\0\0\0\4four\0\0\0\0\0", 22);
    assert_false(r.closed);
    rpc_call_end_take(w->held[0]);
    client_await(&w->client, &r);
    check_status(&r, "0", "");
    assert_int_equal(r.body.len, 22);
    buf_done(&r.body);
}

static void stream_that_ends_without_a_message(void **state)
{
    struct world *w = *state;
    static const struct request request = {"/t.T/Stream", NULL, NULL, "\0\0\0\0\0", 5};
    struct response r;
    client_send(&w->client, &request, &r);
    rpc_call_end_take(w->held[0]);
    client_await(&w->client, &r);
    check_status(&r, "0", "");
    assert_int_equal(r.body.len, 0);
}

/* What a client leaves unread is bounded; once it has read, there is room again. */
static void slow_reader_gets_no_more(void **state)
{
    struct world *w = *state;
    static const struct request request = {"/t.T/Stream", NULL, NULL, "\0\0\0\0\0", 5};
    cleanup_free char *message = calloc(1, RPC_PUSHED_MAX + 1);
    struct response r;
    client_send(&w->client, &request, &r);
    assert_false(rpc_call_push(w->held[0], message, RPC_PUSHED_MAX + 1));
    assert_true(rpc_call_push(w->held[0], message, RPC_PUSHED_MAX));
    assert_false(rpc_call_push(w->held[0], message, RPC_PUSHED_MAX));
    client_settle(&w->client);
    assert_int_equal(r.body.len, RPC_PUSHED_MAX + 5);
    assert_true(rpc_call_push(w->held[0], message, RPC_PUSHED_MAX));
    client_settle(&w->client);
    assert_int_equal(r.body.len, 2 * (RPC_PUSHED_MAX + 5));
    rpc_call_end_take(w->held[0]);
    client_await(&w->client, &r);
    check_status(&r, "0", "");
    buf_done(&r.body);
}

static void on_gone(struct rpc_call *call, void *arg)
{
    struct world *w = arg;
    assert_true(rpc_call_gone(call));
    w->gone++;
}

/* Taken back, or with its connection: the holder hears it once, and may answer into nothing. */
static void client_that_goes_is_told_to_the_holder(void **state)
{
    struct world *w = *state;
    static const struct request request = {"/t.T/Stream", NULL, NULL, "\0\0\0\0\0", 5},
                                plain = {"/t.T/Hold", NULL, NULL, "\0\0\0\0\0", 5};
    struct response stream, held;
    client_send(&w->client, &request, &stream);
    client_send(&w->client, &plain, &held);
    rpc_call_on_gone(w->held[0], on_gone, w);
    assert_true(rpc_call_push(w->held[0], "one", 3));
    nghttp2_submit_rst_stream(w->client.session, 0, stream.stream, NGHTTP2_CANCEL);
    client_settle(&w->client);
    assert_int_equal(w->gone, 1);
    assert_true(rpc_call_gone(w->held[0]));
    assert_false(rpc_call_push(w->held[0], "two", 3));
    assert_false(rpc_call_gone(w->held[1]));
    client_done(&w->client);
    for (int i = 0; i < 4; i++)
        event_base_loop(w->base, EVLOOP_NONBLOCK);
    assert_true(rpc_call_gone(w->held[1]));
    rpc_call_end_take(w->held[0]);
    rpc_call_answer_take(w->held[1], "late", 4);
    assert_int_equal(w->gone, 1);
    buf_done(&stream.body);
    client_init(&w->client, w->base, w->path);
    client_call(&w->client, "/t.T/Echo", "abc", 3, &held);
    check_status(&held, "0", "");
    buf_done(&held.body);
}

/* ---- connections ---- */

static bool hangs_up(struct world *w, int fd)
{
    char byte[64];
    ssize_t n;
    for (int i = 0; i < 4; i++)
        event_base_loop(w->base, EVLOOP_NONBLOCK);
    while ((n = recv(fd, byte, sizeof byte, MSG_DONTWAIT)) > 0)
        continue;
    return n == 0 || errno != EAGAIN;
}

static void connections_are_limited(void **state)
{
    struct world *w = *state;
    int fds[RPC_CONNECTIONS_MAX];
    fds[0] = w->client.fd;
    for (size_t i = 1; i < RPC_CONNECTIONS_MAX; i++) {
        fds[i] = client_connect(w->path);
        assert_false(hangs_up(w, fds[i]));
    }
    int one = client_connect(w->path);
    assert_true(hangs_up(w, one));
    close(one);
    close(fds[RPC_CONNECTIONS_MAX / 2]);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
    fds[RPC_CONNECTIONS_MAX / 2] = client_connect(w->path);
    assert_false(hangs_up(w, fds[RPC_CONNECTIONS_MAX / 2]));
    for (size_t i = 1; i < RPC_CONNECTIONS_MAX; i++)
        close(fds[i]);
}

static void what_is_no_http_ends_its_connection(void **state)
{
    struct world *w = *state;
    int fd = client_connect(w->path);
    assert_int_equal(write(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35), 35);
    assert_true(hangs_up(w, fd));
    close(fd);
    client_settle(&w->client);
    assert_false(w->client.closed);
}

/* ---- sockets ---- */

static void socket_is_ours_alone(void **state)
{
    struct world *w = *state;
    struct stat st;
    assert_int_equal(lstat(w->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void socket_that_is_left_is_replaced(void **state)
{
    struct world *w = *state;
    struct rpc_server *second = NULL;
    struct drarun_error err = {0};
    struct stat st;
    assert_int_equal(rpc_server_new(w->base, methods, ARRAY_LEN(methods), w, &second, &err), 0);
    assert_int_equal(rpc_server_listen(second, w->path, &err), 0);
    rpc_server_free(w->server); /* leaves the other's alone */
    assert_int_equal(lstat(w->path, &st), 0);
    w->server = second;
    client_done(&w->client);
    client_init(&w->client, w->base, w->path);
    client_settle(&w->client);
    assert_false(w->client.closed);
    rpc_server_free(second);
    w->server = NULL;
    assert_int_equal(lstat(w->path, &st), -1);
}

static void path_that_cannot_be_is_named(void **state)
{
    struct world *w = *state;
    struct drarun_error err = {0};
    char path[256], expected[400], length[128];
    snprintf(path, sizeof path, "%s/file", w->dir);
    assert_int_equal(file_replace(path, "x", 1, 0600, FILE_AFTER_ANYTHING, &err), 0);
    assert_int_equal(rpc_server_listen(w->server, path, &err), -EEXIST);
    snprintf(expected, sizeof expected, "%s is there and is no socket", path);
    assert_string_equal(err.text, expected);
    snprintf(path, sizeof path, "%s/none/t.sock", w->dir);
    assert_int_equal(rpc_server_listen(w->server, path, &err), -ENOENT);
    snprintf(expected, sizeof expected, "%s: No such file or directory", path);
    assert_string_equal(err.text, expected);
    snprintf(path, sizeof path, "%s/file/t.sock", w->dir);
    assert_int_equal(rpc_server_listen(w->server, path, &err), -ENOTDIR);
    for (size_t n = 107; n <= 108; n++) { /* with the NUL it takes 108 */
        memset(length, 'x', sizeof length);
        memcpy(length, w->dir, strlen(w->dir));
        length[strlen(w->dir)] = '/';
        length[n] = '\0';
        assert_int_equal(rpc_server_listen(w->server, length, &err), n == 107 ? 0 : -ENAMETOOLONG);
    }
    snprintf(expected, sizeof expected, "%s: longer than the 107 bytes of a socket's path", length);
    assert_string_equal(err.text, expected);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_call_is_answered),
        CASE(what_is_no_call_is_refused),
        CASE(unfinished_request_is_given_up),
        CASE(one_that_waits_holds_up_no_other),
        CASE(large_requests_are_limited),
        CASE(limits_are_announced),
        CASE(stream_is_pushed_to_until_it_ends),
        CASE(stream_that_ends_without_a_message),
        CASE(slow_reader_gets_no_more),
        CASE(client_that_goes_is_told_to_the_holder),
        CASE(connections_are_limited),
        CASE(what_is_no_http_ends_its_connection),
        CASE(socket_is_ours_alone),
        CASE(socket_that_is_left_is_replaced),
        CASE(path_that_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
