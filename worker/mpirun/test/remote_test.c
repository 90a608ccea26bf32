/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "worker/mpirun/remote.h"
#include "worker/mpirun/start.h"

static void fill(Drarun__Wire__Launch *launch, Drarun__Wire__Worker *workers,
                 Drarun__Wire__Worker **pointers, bool same_host)
{
    static const char *const addresses[] = {"10.0.0.7:7173", "[fd00::8]:7173", ""};
    static const char *const hosts[] = {"train-w-0", "train-w-1", "node9"};
    drarun__wire__launch__init(launch);
    for (size_t i = 0; i < 3; i++) {
        drarun__wire__worker__init(&workers[i]);
        workers[i].host = unconst(hosts[i]);
        workers[i].address = unconst(addresses[i]);
        pointers[i] = &workers[i];
    }
    launch->workers = pointers;
    launch->n_workers = 3;
    launch->same_host = same_host;
}

static void names_of_hosts(void **state)
{
    (void)state;
    Drarun__Wire__Launch launch;
    Drarun__Wire__Worker workers[3], *pointers[3];
    char name[64];
    fill(&launch, workers, pointers, false);
    static const char *const expected[] = {"10.0.0.7", "fd00::8", "node9"};
    for (uint32_t i = 0; i < 3; i++) {
        remote_host_name(&launch, i, name, sizeof name);
        assert_string_equal(name, expected[i]);
        assert_int_equal(remote_find_host(&launch, name), i);
    }
    assert_int_equal(remote_find_host(&launch, "train-w-1"), 1);
    assert_int_equal(remote_find_host(&launch, "root@10.0.0.7"), 0);
    assert_int_equal(remote_find_host(&launch, "train-w-3"), -1);
    assert_int_equal(remote_find_host(&launch, ""), -1);
}

static void names_on_one_machine(void **state)
{
    (void)state;
    Drarun__Wire__Launch launch;
    Drarun__Wire__Worker workers[3], *pointers[3];
    char name[64];
    fill(&launch, workers, pointers, true);
    remote_host_name(&launch, 0, name, sizeof name);
    assert_string_equal(name, "train-w-0");
    remote_host_name(&launch, 2, name, sizeof name);
    assert_string_equal(name, "drarun-w-2");
    assert_int_equal(remote_find_host(&launch, "drarun-w-2"), 2);
}

static void known_by_name(void **state)
{
    (void)state;
    assert_true(remote_start_is("/tmp/drarun-x.0.0/drarun-rsh"));
    assert_true(remote_start_is("drarun-rsh"));
    assert_false(remote_start_is("/drarun-rsh/drarun-worker"));
}

static void no_route(void *arg, Drarun__Wire__Routed *message)
{
    (void)arg, (void)message;
    fail_msg("nothing was asked");
}

struct rig {
    Drarun__Wire__Launch launch;
    Drarun__Wire__Worker workers[3], *pointers[3];
    struct agent_job job;
    char folder[24];
    struct event_base *base;
    struct remote *remote;
};

static void rig_init(struct rig *rig, uint32_t worker, remote_route_fn route, void *arg)
{
    *rig = (struct rig){.job = {.wire = &rig->launch, .worker = worker},
                        .folder = "/tmp/remote-XXXXXX"};
    fill(&rig->launch, rig->workers, rig->pointers, false);
    assert_non_null(mkdtemp(rig->folder));
    rig->base = event_base_new();
    rig->remote = remote_new(rig->base, &rig->job, rig->folder, route, arg, NULL);
    assert_non_null(rig->remote);
}

static void rig_done(struct rig *rig)
{
    remote_free(rig->remote);
    event_base_loop(rig->base, EVLOOP_NONBLOCK); /* what was freed in it */
    event_base_free(rig->base);
    assert_int_equal(tree_remove(AT_FDCWD, rig->folder), 0);
}

/* Clients wait without a turn of the loop for each moment, and come in when there is room. */
static void at_the_descriptor_limit(void **state)
{
    (void)state;
    struct rig rig;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct rlimit before, few;
    char byte;
    int turns = 0;
    rig_init(&rig, 0, no_route, NULL);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/remote", rig.folder);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(write(client, "\0\0\0\0", 4), 4); /* no message: it is closed for that */
    int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){(rlim_t)next, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int64_t end = clock_ms() + 300; clock_ms() < end; turns++)
        event_base_loop(rig.base, EVLOOP_ONCE);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_in_range(turns, 1, 20);
    for (int64_t end = clock_ms() + 60000; recv(client, &byte, 1, 0) != 0 && clock_ms() < end;)
        event_base_loop(rig.base, EVLOOP_ONCE);
    assert_int_equal(recv(client, &byte, 1, 0), 0);
    close(client);
    rig_done(&rig);
}

/* The program ended before this worker was told to start: its server reads the end at once. */
static void the_end_may_come_first(void **state)
{
    (void)state;
    struct rig rig;
    char byte, **argv = NULL;
    int server = -1;
    rig_init(&rig, 0, no_route, NULL);
    remote_end(rig.remote);
    assert_int_equal(remote_server(rig.remote, &argv, &server, NULL), 0);
    assert_int_equal(recv(server, &byte, 1, 0), 0);
    close(server);
    free(argv);
    rig_done(&rig);
}

struct heard {
    uint64_t started[2], cancelled, refused;
    size_t count;
};

static void hear(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct heard *heard = arg;
    const Drarun__Wire__Routed *message = envelope->routed;
    (void)channel;
    assert_int_equal(envelope->body_case, DRARUN__WIRE__ENVELOPE__BODY_ROUTED);
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL) {
        assert_int_equal(heard->count, 2);
        heard->cancelled = message->id;
        return;
    }
    assert_int_equal(message->body_case, DRARUN__WIRE__ROUTED__BODY_REMOTE_START);
    assert_string_equal(message->remote_start->command, "orted");
    assert_true(heard->count < 2);
    heard->started[heard->count++] = message->id;
}

static void ignore_close(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
}

static void hear_refusal(void *arg, Drarun__Wire__Routed *message)
{
    struct heard *heard = arg;
    assert_int_equal(message->body_case, DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT);
    assert_int_equal(message->remote_exit->code, 255);
    heard->refused = message->id;
}

static void ask(struct remote *remote, uint64_t id)
{
    Drarun__Wire__RemoteStart start = DRARUN__WIRE__REMOTE_START__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    start.host = unconst("10.0.0.8");
    start.command = unconst("orted");
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_START;
    message.remote_start = &start;
    assert_true(remote_routed(remote, &message));
}

static void cancel(struct remote *remote, uint64_t id)
{
    Drarun__Wire__RemoteCancel body = DRARUN__WIRE__REMOTE_CANCEL__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL;
    message.remote_cancel = &body;
    assert_true(remote_routed(remote, &message));
}

/* Worker 0 was told to start first, and its program is quick: the server reads what came so far, in
 * order. */
static void requests_may_come_before_the_server(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard = {.count = 0};
    char **argv = NULL;
    int server = -1;
    rig_init(&rig, 1, hear_refusal, &heard);
    ask(rig.remote, 7);
    ask(rig.remote, 8);
    cancel(rig.remote, 7);
    assert_int_equal(heard.refused, 0);
    assert_int_equal(remote_server(rig.remote, &argv, &server, NULL), 0);
    struct channel *channel = channel_new_take(rig.base, server, hear, ignore_close, &heard);
    assert_non_null(channel);
    for (int64_t end = clock_ms() + 60000; heard.cancelled == 0 && clock_ms() < end;)
        event_base_loop(rig.base, EVLOOP_ONCE);
    assert_int_equal(heard.started[0], 7);
    assert_int_equal(heard.started[1], 8);
    assert_int_equal(heard.cancelled, 7);
    remote_end(rig.remote);
    ask(rig.remote, 9); /* it has ended */
    assert_int_equal(heard.refused, 9);
    channel_free(channel);
    free(argv);
    rig_done(&rig);
}

/* Nor need anyone wait for what never comes. */
static void worker_0_has_no_server(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard = {.count = 0};
    rig_init(&rig, 0, hear_refusal, &heard);
    ask(rig.remote, 7);
    assert_int_equal(heard.refused, 7);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_hosts),
        cmocka_unit_test(names_on_one_machine),
        cmocka_unit_test(known_by_name),
        cmocka_unit_test(at_the_descriptor_limit),
        cmocka_unit_test(the_end_may_come_first),
        cmocka_unit_test(requests_may_come_before_the_server),
        cmocka_unit_test(worker_0_has_no_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
