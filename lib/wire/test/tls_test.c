/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a TLS connection in one loop, with the same key, with others, and against peers that
 * speak something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <openssl/ssl.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "lib/wire/tls.h"

struct end {
    struct channel *channel;
    int messages;
    int closed;
    struct drarun_error why;
};

struct fixture {
    struct event_base *base;
    struct event *watchdog;
    int pair[2];
    struct end end[2];          /* client, server */
    struct bufferevent *bev[2]; /* theirs, as long as they are open */
};

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct end *end = arg;
    (void)channel;
    assert_int_equal(message->body_case, DRARUN__WIRE__ENVELOPE__BODY_NOTE);
    assert_string_equal(message->note->text, "secret");
    end->messages++;
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct end *end = arg;
    (void)channel;
    end->closed++;
    end->why = *err;
    channel_free(TAKE_PTR(end->channel));
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    fail_msg("nothing happened for 20 s");
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct timeval limit = timeval_from_ms(20000);
    f->base = event_base_new();
    f->watchdog = evtimer_new(f->base, on_watchdog, f);
    evtimer_add(f->watchdog, &limit);
    *state = f;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->pair);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        channel_free(f->end[i].channel);
        close_fd(&f->pair[i]);
    }
    event_free(f->watchdog);
    event_base_free(f->base);
    free(f);
    return 0;
}

static struct tls_key key_of(uint8_t seed)
{
    struct tls_key key;
    for (size_t i = 0; i < sizeof key.bytes; i++)
        key.bytes[i] = (uint8_t)(seed + 7 * i);
    return key;
}

/* One end; its first message is queued at once. The context may go when the connection stands. */
static struct tls_context *open_end(struct fixture *f, enum tls_side side, uint8_t seed)
{
    struct drarun_error err = {0};
    struct tls_key key = key_of(seed);
    size_t i = side == TLS_SERVER;
    struct tls_context *context = tls_context_new(&key, side, &err);
    assert_non_null(context);
    struct bufferevent *bev = tls_open_take(context, f->base, take_fd(&f->pair[i]), &err);
    assert_non_null(bev);
    f->bev[i] = bev;
    f->end[i].channel = channel_from_bufferevent_take(bev, on_message, on_closed, &f->end[i]);
    assert_non_null(f->end[i].channel);
    channel_set_explain(f->end[i].channel, tls_failure);
    Drarun__Wire__Note note = DRARUN__WIRE__NOTE__INIT;
    note.text = unconst("secret");
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NOTE, note, &note);
    assert_int_equal(channel_send(f->end[i].channel, &envelope), 0);
    return context;
}

static void the_same_key(void **state)
{
    struct fixture *f = *state;
    struct tls_context *client = open_end(f, TLS_CLIENT, 1), *server = open_end(f, TLS_SERVER, 1);
    assert_false(tls_has_proved(f->bev[1]));
    while (f->end[0].messages == 0 || f->end[1].messages == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_true(tls_has_proved(f->bev[1]));
    assert_int_equal(f->end[0].closed + f->end[1].closed, 0);
    channel_free(TAKE_PTR(f->end[0].channel)); /* as when its process is killed */
    while (f->end[1].closed == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->end[1].why.code, 0);
    tls_context_free(client);
    tls_context_free(server);
}

/* What the kernel says of a connection that stood, and not that TLS has no word for it. */
static void connection_that_breaks(void **state)
{
    struct fixture *f = *state;
    struct tls_context *client = open_end(f, TLS_CLIENT, 1), *server = open_end(f, TLS_SERVER, 1);
    Drarun__Wire__Note note = DRARUN__WIRE__NOTE__INIT;
    note.text = unconst("never read");
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NOTE, note, &note);
    while (f->end[0].messages == 0 || f->end[1].messages == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    bufferevent_disable(f->bev[1], EV_READ);
    assert_int_equal(channel_send(f->end[0].channel, &envelope), 0);
    event_base_loop(f->base, EVLOOP_NONBLOCK);
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_true(dup2(null, bufferevent_getfd(f->bev[1])) >= 0);
    while (f->end[0].closed == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->end[0].why.code, ECONNRESET);
    assert_non_null(strstr(f->end[0].why.text, strerror(ECONNRESET)));
    tls_context_free(client);
    tls_context_free(server);
}

static void another_key(void **state)
{
    struct fixture *f = *state;
    struct tls_context *client = open_end(f, TLS_CLIENT, 1), *server = open_end(f, TLS_SERVER, 2);
    while (f->end[0].closed == 0 || f->end[1].closed == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->end[0].messages + f->end[1].messages, 0);
    assert_int_equal(f->end[1].why.code, EACCES); /* who checks it knows why */
    assert_int_not_equal(f->end[0].why.code, 0);
    tls_context_free(client);
    tls_context_free(server);
}

/* Bytes that are no TLS. */
static void no_tls_at_all(void **state)
{
    struct fixture *f = *state;
    struct tls_context *server = open_end(f, TLS_SERVER, 1);
    static const char hello[] = "GET / HTTP/1.1\r\nHost: agent\r\n\r\n";
    assert_int_equal(write(f->pair[0], hello, strlen(hello)), strlen(hello));
    while (f->end[1].closed == 0)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(f->end[1].why.code, EACCES);
    assert_int_equal(f->end[1].messages, 0);
    tls_context_free(server);
}

/* The start of a first message of 128 KiB, which never ends. */
static size_t endless_hello(uint8_t *at, size_t size)
{
    static const uint8_t start[] = {22, 3, 1, 0x40, 0, 1, 0x01, 0xff, 0xfc, 3, 3};
    memset(at, 0, size);
    for (size_t i = 0; i + 5 <= size; i += 5 + 0x4000)
        memcpy(at + i, start, 5); /* records of 16 KiB */
    memcpy(at, start, sizeof start);
    return size;
}

static void handshake_without_end(void **state)
{
    struct fixture *f = *state;
    struct tls_context *server = open_end(f, TLS_SERVER, 1);
    static uint8_t hello[100 * 1024];
    size_t size = endless_hello(hello, sizeof hello);
    assert_true(write(f->pair[0], hello, size) > (ssize_t)TLS_HANDSHAKE_MAX);
    for (int i = 0; i < 100 && f->end[1].closed == 0; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    assert_int_equal(f->end[1].closed, 1);
    assert_int_equal(f->end[1].why.code, EACCES);
    assert_non_null(strstr(f->end[1].why.text, "excessive message size"));
    tls_context_free(server);
}

/* A foreign client or server in blocking steps: what it offers, and that it gets nowhere. */
static SSL *foreign(struct fixture *f, size_t i, SSL_CTX *context)
{
    SSL *ssl = SSL_new(context);
    assert_non_null(ssl);
    evutil_make_socket_nonblocking(f->pair[i]);
    SSL_set_fd(ssl, f->pair[i]);
    return ssl;
}

static bool handshake_ends(struct fixture *f, SSL *ssl, size_t other)
{
    int rc = 0;
    for (int i = 0; i < 1000 && f->end[other].closed == 0; i++) {
        rc = SSL_do_handshake(ssl);
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    }
    return rc == 1 && f->end[other].closed == 0;
}

/* A client without any key would need a certificate, which does not exist. */
static void client_without_a_key(void **state)
{
    struct fixture *f = *state;
    struct tls_context *server = open_end(f, TLS_SERVER, 1);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = foreign(f, 0, context);
    SSL_set_connect_state(ssl);
    assert_false(handshake_ends(f, ssl, 1));
    assert_int_equal(f->end[1].closed, 1);
    assert_int_equal(f->end[1].why.code, EACCES);
    SSL_free(ssl);
    SSL_CTX_free(context);
    tls_context_free(server);
}

static void client_of_an_older_version(void **state)
{
    struct fixture *f = *state;
    struct tls_context *server = open_end(f, TLS_SERVER, 1);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    SSL *ssl = foreign(f, 0, context);
    SSL_set_connect_state(ssl);
    assert_false(handshake_ends(f, ssl, 1));
    assert_int_equal(f->end[1].why.code, EACCES);
    SSL_free(ssl);
    SSL_CTX_free(context);
    tls_context_free(server);
}

static unsigned int anonymous(SSL *ssl, const char *hint, char *identity,
                              unsigned int identity_size, unsigned char *psk, unsigned int psk_size)
{
    (void)ssl, (void)hint, (void)psk_size;
    snprintf(identity, identity_size, "somebody");
    memset(psk, 0, 32);
    return 32;
}

static void client_of_another_name(void **state)
{
    struct fixture *f = *state;
    struct tls_context *server = open_end(f, TLS_SERVER, 1);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_psk_client_callback(context, anonymous);
    SSL *ssl = foreign(f, 0, context);
    SSL_set_connect_state(ssl);
    assert_false(handshake_ends(f, ssl, 1));
    assert_int_equal(f->end[1].why.code, EACCES);
    SSL_free(ssl);
    SSL_CTX_free(context);
    tls_context_free(server);
}

/* A peer that says nothing at all does not end the handshake; the door's deadline does (listen.c).
 */
static void peer_that_is_silent(void **state)
{
    struct fixture *f = *state;
    struct tls_context *client = open_end(f, TLS_CLIENT, 1);
    for (int i = 0; i < 20; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    assert_int_equal(f->end[0].closed, 0);
    assert_int_equal(f->end[0].messages, 0);
    /* and what it sent is no message in the clear */
    char seen[4096];
    ssize_t n = read(f->pair[1], seen, sizeof seen);
    assert_true(n > 0);
    assert_null(memmem(seen, (size_t)n, "secret", 6));
    tls_context_free(client);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as every program of ours does */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_same_key),
        TEST(connection_that_breaks),
        TEST(another_key),
        TEST(no_tls_at_all),
        TEST(handshake_without_end),
        TEST(client_without_a_key),
        TEST(client_of_an_older_version),
        TEST(client_of_another_name),
        TEST(peer_that_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
