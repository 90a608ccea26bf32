/* SPDX-License-Identifier: Apache-2.0 */
/* A neighbour that answers where another one was dialled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "worker/tree/listen.h"
#include "worker/tree/peers.h"
#include "worker/tree/pmix_version.h"

struct fixture {
    struct event_base *base;
    struct event *watchdog;
    struct listen_door *door; /* of whoever is at the child's address */
    struct channel *inside;
    Drarun__Wire__Hello answer; /* its hello */
    bool late;                  /* which does not come by itself */
    struct tls_context *tls;
    char address[32];
    struct tree tree;
    struct agent_job job;
    Drarun__Wire__Launch launch;
    Drarun__Wire__Worker worker[2], *workers[2];
    struct peers *peers;
    bool ready, lost;
    char why[512];
};

static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void ignore_close(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
}

static void answer(struct fixture *f)
{
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &f->answer);
    assert_int_equal(channel_send(f->inside, &envelope), 0);
}

static void on_hello(struct channel *channel, const Drarun__Wire__Hello *hello, void *arg)
{
    struct fixture *f = arg;
    (void)hello;
    f->inside = channel;
    channel_set_callbacks(channel, ignore_message, ignore_close, f);
    if (!f->late)
        answer(f);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    fail_msg("nothing happened for 20 s");
}

static void on_message(void *arg, uint32_t from, const Drarun__Wire__Envelope *message)
{
    (void)arg, (void)from, (void)message;
    fail_msg("no message was sent");
}

static void on_ready(void *arg)
{
    ((struct fixture *)arg)->ready = true;
}

static void on_lost(void *arg, const struct drarun_error *err)
{
    struct fixture *f = arg;
    f->lost = true;
    snprintf(f->why, sizeof f->why, "%s", err->text);
}

static void fill_job(struct fixture *f)
{
    drarun__wire__launch__init(&f->launch);
    for (size_t i = 0; i < 2; i++) {
        drarun__wire__worker__init(&f->worker[i]);
        f->worker[i].host = unconst(i == 0 ? "here" : "there");
        f->worker[i].address = i == 0 ? unconst("") : f->address;
        f->workers[i] = &f->worker[i];
    }
    f->launch.uid = unconst("0123abcd");
    f->launch.attempt = 2;
    f->launch.workers = f->workers;
    f->launch.n_workers = 2;
    f->job = (struct agent_job){.wire = &f->launch, .host = "here"};
    f->tree = (struct tree){.self = 0, .size = 2, .radix = 2};
    drarun__wire__hello__init(&f->answer);
    hello_fill(&f->answer, DRARUN__WIRE__ROLE__ROLE_PEER, pmix_version());
    f->answer.job = f->launch.uid;
    f->answer.attempt = 2;
    f->answer.worker = 1;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct timeval limit = timeval_from_ms(20000);
    struct drarun_error err = {0};
    struct tls_key key = {{1, 2, 3}};
    uint16_t port = 0;
    int fd = -1;
    f->base = event_base_new();
    f->watchdog = evtimer_new(f->base, on_watchdog, f);
    evtimer_add(f->watchdog, &limit);
    if (listen_on("127.0.0.1:0", &fd, &port, &err) < 0)
        return -1;
    snprintf(f->address, sizeof f->address, "127.0.0.1:%u", port);
    f->door = listen_open_take(f->base, fd, &key, on_hello, f, &err);
    f->tls = tls_context_new(&key, TLS_CLIENT, &err);
    fill_job(f);
    const struct peers_owner owner = {
        .message = on_message, .ready = on_ready, .lost = on_lost, .arg = f, .silence_ms = 15000};
    f->peers = peers_new(f->base, &f->job, &f->tree, f->tls, &owner);
    *state = f;
    return f->door && f->tls && f->peers ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    peers_free(f->peers);
    channel_free(f->inside);
    listen_close(f->door);
    tls_context_free(f->tls);
    event_free(f->watchdog);
    event_base_free(f->base);
    free(f);
    return 0;
}

static void connect_both(struct fixture *f)
{
    struct drarun_error err = {0};
    assert_int_equal(peers_connect(f->peers, &err), 0);
    while (!f->ready && !f->lost)
        event_base_loop(f->base, EVLOOP_ONCE);
}

static void the_neighbour(void **state)
{
    struct fixture *f = *state;
    connect_both(f);
    assert_true(f->ready);
}

static void refused(struct fixture *f)
{
    connect_both(f);
    assert_true(f->lost);
    assert_non_null(strstr(f->why, "worker 1 (there)"));
    assert_non_null(strstr(f->why, "answers at its address"));
}

static void another_worker(void **state)
{
    struct fixture *f = *state;
    f->answer.worker = 0;
    refused(f);
}

static void another_job(void **state)
{
    struct fixture *f = *state;
    f->answer.job = unconst("4567cdef");
    refused(f);
}

static void another_attempt(void **state)
{
    struct fixture *f = *state;
    f->answer.attempt = 1;
    refused(f);
}

/* ---- time ---- */

static struct event **record; /* where the next deadline is put; NULL: nowhere */

/* NOLINTBEGIN: names that the linker makes */
int __real_event_add(struct event *event, const struct timeval *after);
/* not hidden: where libevent is shared, its own libraries refer to it, too */
__attribute__((visibility("default"))) int __wrap_event_add(struct event *event,
                                                            const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after)
{
    if (record && after)
        *record = event;
    return __real_event_add(event, after);
}
/* NOLINTEND */

/* Returns the deadline. */
static struct event *connect_late(struct fixture *f)
{
    struct event *deadline = NULL;
    struct drarun_error err = {0};
    f->late = true;
    record = &deadline;
    assert_int_equal(peers_connect(f->peers, &err), 0);
    record = NULL;
    assert_non_null(deadline);
    return deadline;
}

/* It has the connection and prepares the job, for which the launcher gives it time. */
static void slow_child(void **state)
{
    struct fixture *f = *state;
    struct event *deadline = connect_late(f);
    while (!f->inside && !f->lost)
        event_base_loop(f->base, EVLOOP_ONCE);
    event_active(deadline, EV_TIMEOUT, 0);
    event_base_loop(f->base, EVLOOP_NONBLOCK);
    assert_false(f->lost);
    answer(f);
    while (!f->ready && !f->lost)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_true(f->ready);
}

static void unreachable_child(void **state)
{
    struct fixture *f = *state;
    event_active(connect_late(f), EV_TIMEOUT, 0);
    event_base_loop(f->base, EVLOOP_NONBLOCK);
    assert_true(f->lost);
    assert_string_equal(f->why, "worker 1 (there): not connected to its neighbour worker 0 within "
                                "10 s");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as in the agent */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_neighbour),   TEST(another_worker), TEST(another_job),
        TEST(another_attempt), TEST(slow_child),     TEST(unreachable_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
