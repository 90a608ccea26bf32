/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/* ---- clients ---- */

/* A line of what is passed on: "WORKER/ID KIND WHAT". */
static void note(struct buf *lines, uint32_t worker, const Drarun__Wire__Routed *message)
{
    buf_printf(lines, "%u/%u ", worker, (unsigned)message->id);
    switch (message->body_case) {
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_START:
        buf_printf(lines, "start %s: %s\n", message->remote_start->host,
                   message->remote_start->command);
        break;
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK:
        buf_printf(lines, "ack %u\n", (unsigned)message->remote_ack->bytes);
        break;
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL:
        buf_printf(lines, "cancel\n");
        break;
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT:
        buf_printf(lines, "output %.*s\n", (int)message->remote_output->data.len,
                   (const char *)message->remote_output->data.data);
        break;
    case DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT:
        buf_printf(lines, "exit %u %s\n", message->remote_exit->code, message->remote_exit->text);
        break;
    default:
        fail_msg("a body of case %d", message->body_case);
    }
}

static void pass(void *arg, Drarun__Wire__Routed *message)
{
    note(arg, message->destination, message);
}

/* A drarun-rsh. */
struct client {
    struct channel *channel;
    struct buf heard; /* as above */
    bool closed;
};

static void client_hear(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct client *client = arg;
    (void)channel;
    assert_int_equal(envelope->body_case, DRARUN__WIRE__ENVELOPE__BODY_ROUTED);
    note(&client->heard, 0, envelope->routed);
}

static void client_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct client *client = arg;
    (void)channel, (void)err;
    client->closed = true;
}

static void client_init(struct client *client, const struct rig *rig)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *client = (struct client){.heard = BUF_INIT};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/remote", rig->folder);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    fd_set_nonblock(fd);
    client->channel = channel_new_take(rig->base, fd, client_hear, client_closed, client);
    assert_non_null(client->channel);
}

static void client_done(struct client *client)
{
    channel_free(client->channel);
    buf_done(&client->heard);
}

static void client_send(struct client *client, Drarun__Wire__Routed *message)
{
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, message);
    assert_int_equal(channel_send(client->channel, &envelope), 0);
}

static void client_ask(struct client *client, const char *host)
{
    Drarun__Wire__RemoteStart start = DRARUN__WIRE__REMOTE_START__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    start.host = unconst(host);
    start.command = unconst("orted");
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_START;
    message.remote_start = &start;
    client_send(client, &message);
}

static void client_acknowledge(struct client *client, uint64_t bytes)
{
    Drarun__Wire__RemoteAck body = DRARUN__WIRE__REMOTE_ACK__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.bytes = bytes;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK;
    message.remote_ack = &body;
    client_send(client, &message);
}

/* Of the worker that it asked. */
static void tell_output(struct rig *rig, uint64_t id, const char *text)
{
    Drarun__Wire__RemoteOutput body = DRARUN__WIRE__REMOTE_OUTPUT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.data.data = unconst(text);
    body.data.len = strlen(text);
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT;
    message.remote_output = &body;
    assert_true(remote_routed(rig->remote, &message));
}

static void tell_exit(struct rig *rig, uint64_t id, uint32_t code)
{
    Drarun__Wire__RemoteExit body = DRARUN__WIRE__REMOTE_EXIT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.code = code;
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT;
    message.remote_exit = &body;
    assert_true(remote_routed(rig->remote, &message));
}

/* Turns the loop until the lines are those. */
static void await_lines(struct rig *rig, const struct buf *lines, const char *expected)
{
    const struct timeval most = {.tv_sec = 60};
    event_base_loopexit(rig->base, &most);
    for (int64_t end = clock_ms() + 60000; lines->len < strlen(expected) && clock_ms() < end;)
        event_base_loop(rig->base, EVLOOP_ONCE);
    assert_string_equal(lines->data ? lines->data : "", expected);
}

static void await_closed(struct rig *rig, const struct client *client)
{
    const struct timeval most = {.tv_sec = 60};
    event_base_loopexit(rig->base, &most);
    for (int64_t end = clock_ms() + 60000; !client->closed && clock_ms() < end;)
        event_base_loop(rig->base, EVLOOP_ONCE);
    assert_true(client->closed);
}

static void requests_and_answers_find_each_other(void **state)
{
    (void)state;
    struct rig rig;
    struct buf passed = BUF_INIT;
    struct client a, b;
    rig_init(&rig, 0, pass, &passed);
    client_init(&a, &rig);
    client_init(&b, &rig);
    client_ask(&a, "fd00::8");
    await_lines(&rig, &passed, "1/1 start fd00::8: orted\n");
    client_ask(&b, "node9");
    await_lines(&rig, &passed, "1/1 start fd00::8: orted\n2/2 start node9: orted\n");
    buf_done(&passed);
    tell_output(&rig, 2, "of b");
    await_lines(&rig, &b.heard, "0/2 output of b\n");
    client_acknowledge(&b, 4);
    await_lines(&rig, &passed, "2/2 ack 4\n");
    tell_output(&rig, 1, "of a");
    tell_exit(&rig, 3, 9); /* nobody's */
    tell_exit(&rig, 1, 5);
    tell_exit(&rig, 1, 6); /* it has its answer */
    tell_output(&rig, 1, "late");
    await_lines(&rig, &a.heard, "0/1 output of a\n0/1 exit 5 \n");
    client_acknowledge(&a, 4); /* nobody waits for it */
    tell_output(&rig, 2, "more");
    await_lines(&rig, &b.heard, "0/2 output of b\n0/2 output more\n");
    assert_false(a.closed);
    assert_false(b.closed);
    /* killed by mpirun; the one that was answered has nothing to cancel */
    client_done(&a);
    client_done(&b);
    await_lines(&rig, &passed, "2/2 ack 4\n2/2 cancel\n");
    buf_done(&passed);
    rig_done(&rig);
}

static void a_host_that_is_no_worker(void **state)
{
    (void)state;
    struct rig rig;
    struct client client;
    rig_init(&rig, 0, no_route, NULL);
    client_init(&client, &rig);
    client_ask(&client, "train-w-9");
    await_closed(&rig, &client);
    assert_string_equal(client.heard.data,
                        "0/0 exit 255 no worker of this job is called train-w-9: "
                        "use the names in $DRARUN_HOSTFILE\n");
    client_done(&client);
    rig_done(&rig);
}

/* It runs the command itself. */
static void the_workers_own_host(void **state)
{
    (void)state;
    struct rig rig;
    struct client client;
    rig_init(&rig, 1, no_route, NULL);
    client_init(&client, &rig);
    client_ask(&client, "fd00::8");
    await_lines(&rig, &client.heard, "0/0 start fd00::8: orted\n");
    client_done(&client);
    rig_done(&rig);
}

static void who_breaks_the_rules_is_closed(void **state)
{
    (void)state;
    struct rig rig;
    struct buf passed = BUF_INIT;
    struct client client;
    Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
    Drarun__Wire__Envelope other = WIRE_ENVELOPE(FAILURE, failure, &failure);
    rig_init(&rig, 0, pass, &passed);
    client_init(&client, &rig);
    client_acknowledge(&client, 1); /* of what it did not ask for */
    await_closed(&rig, &client);
    client_done(&client);
    client_init(&client, &rig);
    assert_int_equal(channel_send(client.channel, &other), 0);
    await_closed(&rig, &client);
    client_done(&client);
    assert_int_equal(passed.len, 0);
    client_init(&client, &rig);
    client_ask(&client, "node9");
    client_ask(&client, "node9"); /* twice */
    await_closed(&rig, &client);
    client_done(&client);
    assert_string_equal(passed.data, "2/1 start node9: orted\n");
    buf_done(&passed);
    rig_done(&rig);
}

/* ---- the server's worker ---- */

static void the_server_speaks_to_other_workers(void **state)
{
    (void)state;
    struct rig rig;
    struct buf passed = BUF_INIT;
    struct client server = {.heard = BUF_INIT};
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT, end = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__RemoteExit body = DRARUN__WIRE__REMOTE_EXIT__INIT;
    Drarun__Wire__RemoteEnd over = DRARUN__WIRE__REMOTE_END__INIT;
    char **argv = NULL, number[16];
    int fd = -1;
    rig_init(&rig, 1, pass, &passed);
    assert_int_equal(remote_server(rig.remote, &argv, &fd, NULL), 0);
    snprintf(number, sizeof number, "%d", fd);
    assert_string_equal(argv[0], "/proc/self/exe");
    assert_string_equal(argv[1], "--remote-serve");
    assert_string_equal(argv[2], number);
    assert_null(argv[3]);
    free(argv);
    server.channel = channel_new_take(rig.base, fd, client_hear, client_closed, &server);
    ask(rig.remote, 7);
    await_lines(&rig, &server.heard, "0/7 start 10.0.0.8: orted\n");
    message.destination = 2;
    message.id = 7;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT;
    message.remote_exit = &body;
    body.code = 4;
    client_send(&server, &message);
    await_lines(&rig, &passed, "2/7 exit 4 \n");
    message.body_case = DRARUN__WIRE__ROUTED__BODY_DMODEX_REPLY;
    assert_false(remote_routed(rig.remote, &message)); /* another one's */
    end.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_END;
    end.remote_end = &over;
    assert_true(remote_routed(rig.remote, &end));
    await_closed(&rig, &server);
    client_done(&server);
    cancel(rig.remote, 7); /* needs no answer */
    ask(rig.remote, 8);
    await_lines(&rig, &passed,
                "2/7 exit 4 \n0/8 exit 255 that worker is not up, or has ended already\n");
    buf_done(&passed);
    rig_done(&rig);
}

/* Of each client of a job a start and its end. */
static void so_many_requests_wait_for_the_server(void **state)
{
    (void)state;
    struct rig rig;
    struct heard heard = {.count = 0};
    rig_init(&rig, 1, hear_refusal, &heard);
    for (uint64_t id = 1; id <= 8192; id++)
        ask(rig.remote, id);
    assert_int_equal(heard.refused, 0);
    ask(rig.remote, 8193);
    assert_int_equal(heard.refused, 8193);
    rig_done(&rig);
}

/* ---- files and environment ---- */

static void assert_file(const struct rig *rig, const char *name, const char *expected)
{
    struct buf text = BUF_INIT;
    struct stat st;
    char path[64];
    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    assert_int_equal(file_read(AT_FDCWD, path, 1000, &text, NULL), 0);
    assert_string_equal(text.data, expected);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    buf_done(&text);
}

static void host_files_are_mpiruns(void **state)
{
    (void)state;
    struct rig rig;
    char path[64], self[256], target[256];
    rig_init(&rig, 0, no_route, NULL);
    assert_file(&rig, "hosts", "10.0.0.7 slots=1\nfd00::8 slots=1\nnode9 slots=1\n");
    assert_file(&rig, "hosts.hydra", "10.0.0.7:1\nfd00::8:1\nnode9:1\n");
    snprintf(path, sizeof path, "%s/drarun-rsh", rig.folder);
    ssize_t n = readlink(path, target, sizeof target);
    assert_true(n > 0);
    assert_int_equal(readlink("/proc/self/exe", self, sizeof self), n);
    assert_memory_equal(self, target, (size_t)n);
    remote_free(rig.remote);
    rig.launch.slots = 12;
    rig.launch.same_host = true;
    tree_remove(AT_FDCWD, rig.folder);
    assert_int_equal(mkdir(rig.folder, 0700), 0);
    rig.remote = remote_new(rig.base, &rig.job, rig.folder, no_route, NULL, NULL);
    assert_non_null(rig.remote);
    assert_file(&rig, "hosts", "train-w-0 slots=12\ndrarun-w-1 slots=12\ndrarun-w-2 slots=12\n");
    assert_file(&rig, "hosts.hydra", "train-w-0:12\ndrarun-w-1:12\ndrarun-w-2:12\n");
    rig_done(&rig);
}

static void a_folder_that_does_not_do(void **state)
{
    (void)state;
    struct agent_job job = {.wire = NULL};
    struct drarun_error err = {0};
    char folder[102], expected[256];
    memset(folder, 'x', sizeof folder);
    folder[sizeof folder - 1] = '\0'; /* with "/remote" a byte more than a socket's path may have */
    assert_null(remote_new(NULL, &job, folder, no_route, NULL, &err));
    snprintf(expected, sizeof expected, "%s: too long for a socket", folder);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.code, ENAMETOOLONG);
    folder[sizeof folder - 2] = '\0';
    assert_null(remote_new(NULL, &job, folder, no_route, NULL, &err));
    snprintf(expected, sizeof expected, "%s/remote: No such file or directory", folder);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.code, ENOENT);
}

static void environment_makes_mpirun_ask_us(void **state)
{
    (void)state;
    static const struct {
        const char *name, *below, *value; /* below: of the session directory */
    } table[] = {
        {"DRARUN_REMOTE", "/remote", NULL},
        {"DRARUN_HOSTFILE", "/hosts", NULL},
        {"OMPI_MCA_plm_rsh_agent", "/drarun-rsh:/bin/sh", NULL},
        {"OMPI_MCA_orte_default_hostfile", "/hosts", NULL},
        {"PRTE_MCA_plm_ssh_agent", "/drarun-rsh", NULL},
        {"PRTE_MCA_prte_default_hostfile", "/hosts", NULL},
        {"HYDRA_LAUNCHER_EXEC", "/drarun-rsh", NULL},
        {"HYDRA_HOST_FILE", "/hosts.hydra", NULL},
        {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/drarun-rsh", NULL},
        {"I_MPI_HYDRA_HOST_FILE", "/hosts.hydra", NULL},
        {"OMPI_MCA_plm_rsh_no_tree_spawn", NULL, "1"},
        {"PRTE_MCA_plm_ssh_no_tree_spawn", NULL, "1"},
        {"HYDRA_LAUNCHER", NULL, "fork"}, /* the user's own */
        {"I_MPI_HYDRA_BOOTSTRAP", NULL, "ssh"},
        {"OMPI_ALLOW_RUN_AS_ROOT", NULL, "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", NULL, "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT", NULL, "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", NULL, "1"},
    };
    struct rig rig;
    struct strlist env = STRLIST_INIT;
    char expected[128];
    rig_init(&rig, 0, no_route, NULL);
    strlist_add(&env, "HYDRA_LAUNCHER=fork");
    remote_environment(rig.remote, &env);
    assert_int_equal(env.count, ARRAY_LEN(table) + 1); /* with DRARUN_DEFAULTS, which names them */
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        snprintf(expected, sizeof expected, "%s%s", table[i].below ? rig.folder : "",
                 table[i].below ? table[i].below : table[i].value);
        assert_string_equal(env_get(&env, table[i].name), expected);
    }
    strlist_done(&env);
    rig_done(&rig);
}

/* The one whose address the others have; those of one machine need none. */
static void hydras_interface(void **state)
{
    (void)state;
    struct rig rig;
    struct strlist env = STRLIST_INIT;
    rig_init(&rig, 1, no_route, NULL);
    rig.workers[1].address = unconst("127.0.0.1:7173");
    remote_environment(rig.remote, &env);
    assert_string_equal(env_get(&env, "HYDRA_IFACE"), "lo");
    assert_string_equal(env_get(&env, "I_MPI_HYDRA_IFACE"), "lo");
    strlist_done(&env);
    rig.launch.same_host = true;
    env = (struct strlist)STRLIST_INIT;
    remote_environment(rig.remote, &env);
    assert_null(env_get(&env, "HYDRA_IFACE"));
    strlist_done(&env);
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
        cmocka_unit_test(requests_and_answers_find_each_other),
        cmocka_unit_test(a_host_that_is_no_worker),
        cmocka_unit_test(the_workers_own_host),
        cmocka_unit_test(who_breaks_the_rules_is_closed),
        cmocka_unit_test(the_server_speaks_to_other_workers),
        cmocka_unit_test(so_many_requests_wait_for_the_server),
        cmocka_unit_test(host_files_are_mpiruns),
        cmocka_unit_test(a_folder_that_does_not_do),
        cmocka_unit_test(environment_makes_mpirun_ask_us),
        cmocka_unit_test(hydras_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
