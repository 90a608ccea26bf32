/* SPDX-License-Identifier: Apache-2.0 */
/* An agent between its launcher and the child that it dials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "worker/agent/private.h"
#include "worker/tree/pmix_version.h"

#define LIMIT_MS 60000

static struct rig {
    struct event_base *base;
    char folder[24];
    char address[32];
    struct listen_door *door;
    struct channel *child, *launcher;
    struct agent *agent;
    bool dialled;     /* by the agent */
    bool ready, done; /* the launcher was told */
    bool passed_on;   /* the child's message to itself has come back */
} rig;

static void ignore_close(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
}

static void launcher_hears(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)arg;
    rig.ready |= message->body_case == DRARUN__WIRE__ENVELOPE__BODY_READY;
    rig.done |= message->body_case == DRARUN__WIRE__ENVELOPE__BODY_DONE;
}

static void child_hears(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)arg;
    rig.passed_on |= message->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED;
}

static void on_dialled(struct channel *channel, const Drarun__Wire__Hello *hello, void *arg)
{
    (void)hello, (void)arg;
    rig.child = channel;
    rig.dialled = true;
    channel_set_callbacks(channel, child_hears, ignore_close, NULL);
}

static void on_overdue(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    fail_msg("nothing happened for %d s", LIMIT_MS / 1000);
}

static void turn_until(const bool *come)
{
    struct timeval limit = timeval_from_ms(LIMIT_MS);
    struct event *clock = evtimer_new(rig.base, on_overdue, NULL);
    assert_non_null(clock);
    assert_int_equal(evtimer_add(clock, &limit), 0);
    while (!*come)
        event_base_loop(rig.base, EVLOOP_ONCE);
    event_free(clock);
}

static int set_up(void **state)
{
    const struct tls_key key = {{1, 2, 3}};
    struct agent_options options = {.listen_fd = -1};
    struct drarun_error err = {0};
    uint16_t port = 0;
    int fd = -1, pair[2];
    (void)state;
    rig = (struct rig){.base = event_base_new(), .folder = "/tmp/neighbours-XXXXXX"};
    if (!mkdtemp(rig.folder) || setenv("TMPDIR", rig.folder, 1) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
        listen_on("127.0.0.1:0", &fd, &port, &err) < 0)
        return -1;
    snprintf(rig.address, sizeof rig.address, "127.0.0.1:%u", port);
    rig.door = listen_open_take(rig.base, fd, &key, on_dialled, NULL, &err);
    rig.launcher = channel_new_take(rig.base, pair[0], launcher_hears, ignore_close, NULL);
    options.control_fd = pair[1];
    rig.agent = agent_new(rig.base, &options, &err);
    if (!rig.door || !rig.launcher || !rig.agent)
        return -1;
    rig.agent->dial_tls = tls_context_new(&key, TLS_CLIENT, &err); /* as with a port of its own */
    return rig.agent->dial_tls ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    agent_free(rig.agent);
    channel_free(rig.launcher);
    channel_free(rig.child);
    listen_close(rig.door);
    event_base_loop(rig.base, EVLOOP_NONBLOCK);
    event_base_free(rig.base);
    return tree_remove(AT_FDCWD, rig.folder);
}

static void send_to(struct channel *channel, Drarun__Wire__Envelope message)
{
    assert_int_equal(channel_send(channel, &message), 0);
}

static void launch(void)
{
    static char word[] = "true", *argv[] = {word};
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Block blocks[2] = {DRARUN__WIRE__BLOCK__INIT, DRARUN__WIRE__BLOCK__INIT};
    Drarun__Wire__Block *block_list[] = {&blocks[0], &blocks[1]};
    Drarun__Wire__Worker workers[2] = {DRARUN__WIRE__WORKER__INIT, DRARUN__WIRE__WORKER__INIT};
    Drarun__Wire__Worker *worker_list[] = {&workers[0], &workers[1]};
    Drarun__Wire__Launch message = DRARUN__WIRE__LAUNCH__INIT;
    app.argv = argv;
    app.n_argv = 1;
    blocks[0].count = blocks[1].count = blocks[1].first = blocks[1].worker = 1;
    workers[0].host = unconst("here");
    workers[1].host = unconst("there");
    workers[1].address = rig.address;
    message.uid = unconst("0123abcd");
    message.radix = 2;
    message.apps = apps;
    message.n_apps = 1;
    message.blocks = block_list;
    message.n_blocks = 2;
    message.workers = worker_list;
    message.n_workers = 2;
    message.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_ENV;
    message.stdin_rank = -1;
    message.inherit_env = true;
    message.session_dir = unconst("neighbours");
    send_to(rig.launcher, (Drarun__Wire__Envelope)WIRE_ENVELOPE(LAUNCH, launch, &message));
}

static void child_answers(void)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_PEER, pmix_version());
    hello.job = unconst("0123abcd");
    hello.worker = 1;
    send_to(rig.child, (Drarun__Wire__Envelope)WIRE_ENVELOPE(HELLO, hello, &hello));
}

/* The agent passes it on, after all that came before. */
static void child_sends_to_itself(void)
{
    Drarun__Wire__RemoteEnd body = DRARUN__WIRE__REMOTE_END__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    message.destination = 1;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_END;
    message.remote_end = &body;
    send_to(rig.child, (Drarun__Wire__Envelope)WIRE_ENVELOPE(ROUTED, routed, &message));
}

static void ready_with_its_child(void **state)
{
    (void)state;
    launch();
    turn_until(&rig.dialled);
    child_answers();
    turn_until(&rig.ready);
    assert_int_equal(rig.agent->state, AGENT_READY);
}

/* Neither launcher nor ranks expect anything of it any more. */
static void done_before_its_child_answers(void **state)
{
    Drarun__Wire__End end = DRARUN__WIRE__END__INIT;
    (void)state;
    launch();
    turn_until(&rig.dialled);
    send_to(rig.launcher, (Drarun__Wire__Envelope)WIRE_ENVELOPE(END, end, &end));
    turn_until(&rig.done);
    child_answers();
    child_sends_to_itself();
    turn_until(&rig.passed_on);
    event_base_loop(rig.base, EVLOOP_NONBLOCK);
    assert_int_equal(rig.agent->state, AGENT_DONE);
    assert_false(rig.ready);
}

/* All agents above it prepare the job before its parent dials. */
static void waits_for_its_parent_as_the_launcher_does(void **state)
{
    Drarun__Wire__Assignment assignment = DRARUN__WIRE__ASSIGNMENT__INIT;
    struct timeval due, now;
    (void)state;
    assignment.uid = unconst("0123abcd");
    assignment.worker = 1;
    assignment.session_dir = unconst("neighbours");
    assignment.prepare_ms = 600000;
    send_to(rig.launcher,
            (Drarun__Wire__Envelope)WIRE_ENVELOPE(ASSIGNMENT, assignment, &assignment));
    while (rig.agent->state != AGENT_PREPARING)
        event_base_loop(rig.base, EVLOOP_ONCE);
    assert_true(event_pending(rig.agent->parent.due, EV_TIMEOUT, &due));
    evutil_gettimeofday(&now, NULL);
    assert_in_range(due.tv_sec - now.tv_sec, 500, 601);
}

int main(void)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL); /* as main.c does */
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(ready_with_its_child),
                                       TEST(done_before_its_child_answers),
                                       TEST(waits_for_its_parent_as_the_launcher_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
