/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "worker/mpirun/serve.h"

#define WINDOW (4u * 16384u)
#define CHUNK 16384u

/* The agent, and the server in a process of its own. */
struct agent {
    struct event_base *base;
    struct channel *channel;
    pid_t server;
    struct buf out, err; /* of all programs together */
    struct buf exits;    /* "SOURCE/ID: CODE TEXT\n", in order */
    size_t exit_count;
    bool acknowledges;
};

static void send_body(struct agent *agent, uint32_t source, uint64_t id,
                      Drarun__Wire__Routed *message)
{
    message->source = source;
    message->id = id;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, message);
    assert_int_equal(channel_send(agent->channel, &envelope), 0);
}

static void start(struct agent *agent, uint32_t source, uint64_t id, const char *command)
{
    Drarun__Wire__RemoteStart body = DRARUN__WIRE__REMOTE_START__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.host = unconst("host");
    body.command = unconst(command);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_START;
    message.remote_start = &body;
    send_body(agent, source, id, &message);
}

static void acknowledge(struct agent *agent, uint32_t source, uint64_t id, uint64_t bytes)
{
    Drarun__Wire__RemoteAck body = DRARUN__WIRE__REMOTE_ACK__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.bytes = bytes;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK;
    message.remote_ack = &body;
    send_body(agent, source, id, &message);
}

static void cancel(struct agent *agent, uint32_t source, uint64_t id)
{
    Drarun__Wire__RemoteCancel body = DRARUN__WIRE__REMOTE_CANCEL__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL;
    message.remote_cancel = &body;
    send_body(agent, source, id, &message);
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct agent *agent = arg;
    (void)channel;
    assert_int_equal(envelope->body_case, DRARUN__WIRE__ENVELOPE__BODY_ROUTED);
    const Drarun__Wire__Routed *message = envelope->routed;
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT) {
        buf_printf(&agent->exits, "%u/%" PRIu64 ": %u %s\n", message->destination, message->id,
                   message->remote_exit->code, message->remote_exit->text);
        agent->exit_count++;
        return;
    }
    assert_int_equal(message->body_case, DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT);
    const Drarun__Wire__RemoteOutput *output = message->remote_output;
    bool err = output->stream == DRARUN__WIRE__STREAM__STREAM_STDERR;
    assert_in_range(output->data.len, 1, CHUNK);
    buf_add(err ? &agent->err : &agent->out, output->data.data, output->data.len);
    if (agent->acknowledges)
        acknowledge(agent, message->destination, message->id, output->data.len);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)arg;
    fail_msg("the server ended: %s", err->text);
}

static void agent_init(struct agent *agent)
{
    int fds[2];
    sigset_t one;
    *agent = (struct agent){.acknowledges = true};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    if ((agent->server = fork()) == 0) {
        close(fds[0]);
        sigprocmask(SIG_BLOCK, &one, NULL);
        _exit(remote_serve(fds[1]));
    }
    close(fds[1]);
    agent->base = event_base_new();
    agent->channel = channel_new_take(agent->base, fds[0], on_message, on_closed, agent);
    assert_non_null(agent->channel);
}

/* The server ends with its connection. */
static void agent_done(struct agent *agent)
{
    int status;
    channel_free(agent->channel);
    event_base_loop(agent->base, EVLOOP_NONBLOCK);
    event_base_free(agent->base);
    assert_int_equal(waitpid(agent->server, &status, 0), agent->server);
    assert_int_equal(status, 0);
    buf_done(&agent->out);
    buf_done(&agent->err);
    buf_done(&agent->exits);
}

static void turn(struct agent *agent)
{
    const struct timeval most = {.tv_sec = 60};
    event_base_loopexit(agent->base, &most);
    event_base_loop(agent->base, EVLOOP_ONCE);
}

static void await_exits(struct agent *agent, size_t count)
{
    for (int64_t end = clock_ms() + 60000; agent->exit_count < count && clock_ms() < end;)
        turn(agent);
    assert_int_equal(agent->exit_count, count);
}

static void await_output(struct agent *agent, size_t length)
{
    for (int64_t end = clock_ms() + 60000; agent->out.len < length && clock_ms() < end;)
        turn(agent);
    assert_true(agent->out.len >= length);
}

static const char *text_of(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

static void output_and_end_go_to_the_asker(void **state)
{
    (void)state;
    static const struct {
        const char *command, *out, *err, *exits;
    } table[] = {
        {"echo a b; echo c >&2; exit 5", "a b\n", "c\n", "3/7: 5 \n"},
        {"true", "", "", "3/7: 0 \n"},
        {"kill -9 $$", "", "", "3/7: 137 \n"},
        {"cat; echo $?", "0\n", "", "3/7: 0 \n"}, /* it has no input */
        {"read -r pid name state parent group session rest </proc/$$/stat; "
         "[ $group = $$ ] && [ $session = $$ ] && echo leads",
         "leads\n", "", "3/7: 0 \n"},
        {"sed -n 's/^SigBlk:\\t//p' /proc/self/status", "0000000000000000\n", "", "3/7: 0 \n"},
        /* as SIGPIPE does, which the server itself ignores */
        {"echo $(( 0x$(sed -n 's/^SigIgn:\\t//p' /proc/self/status) >> 12 & 1 ))", "0\n", "",
         "3/7: 0 \n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct agent agent;
        agent_init(&agent);
        start(&agent, 3, 7, table[i].command);
        await_exits(&agent, 1);
        assert_string_equal(text_of(&agent.out), table[i].out);
        assert_string_equal(text_of(&agent.err), table[i].err);
        assert_string_equal(text_of(&agent.exits), table[i].exits);
        agent_done(&agent);
    }
}

static void programs_are_known_by_asker_and_number(void **state)
{
    (void)state;
    struct agent agent;
    agent_init(&agent);
    start(&agent, 3, 7, "echo up; sleep 1000");
    await_output(&agent, 3);
    start(&agent, 3, 7, "exit 1"); /* the same: it is running */
    cancel(&agent, 4, 7);
    cancel(&agent, 3, 8);
    acknowledge(&agent, 4, 7, 1);
    start(&agent, 4, 7, "exit 2");
    await_exits(&agent, 1);
    start(&agent, 3, 8, "exit 3");
    await_exits(&agent, 2);
    assert_string_equal(agent.exits.data, "4/7: 2 \n3/8: 3 \n");
    cancel(&agent, 3, 7);
    await_exits(&agent, 3);
    assert_string_equal(agent.exits.data, "4/7: 2 \n3/8: 3 \n3/7: 143 \n");
    start(&agent, 3, 7, "exit 4"); /* its number is free again */
    await_exits(&agent, 4);
    assert_string_equal(agent.exits.data, "4/7: 2 \n3/8: 3 \n3/7: 143 \n3/7: 4 \n");
    agent_done(&agent);
}

static bool is_gone(pid_t pid)
{
    char path[64], status[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    bool zombie =
        fgets(status, sizeof status, file) && strstr(status, ") Z "); /* nobody reaps it */
    fclose(file);
    return zombie;
}

static void await_gone(pid_t pid)
{
    for (int64_t end = clock_ms() + 60000; !is_gone(pid) && clock_ms() < end;)
        usleep(1000);
    assert_true(is_gone(pid));
}

/* Its children are in its group; one that was told to end may do it in order. */
static void who_is_cancelled_ends_with_its_children(void **state)
{
    (void)state;
    struct agent agent;
    agent_init(&agent);
    start(&agent, 1, 1, "trap 'exit 9' TERM; sh -c 'echo $$; exec sleep 1000' & wait");
    await_output(&agent, 2);
    pid_t child = (pid_t)strtol(agent.out.data, NULL, 10);
    assert_true(child > 0);
    cancel(&agent, 1, 1);
    await_exits(&agent, 1);
    assert_string_equal(agent.exits.data, "1/1: 9 \n");
    await_gone(child);
    agent_done(&agent);
}

/* A daemon holds the pipes of the shell that started it. */
static void who_leaves_its_pipes_open_has_ended(void **state)
{
    (void)state;
    struct agent agent;
    agent_init(&agent);
    start(&agent, 1, 1, "sleep 1000 & echo $!; exit 6");
    await_exits(&agent, 1);
    assert_string_equal(agent.exits.data, "1/1: 6 \n");
    kill((pid_t)strtol(agent.out.data, NULL, 10), SIGKILL);
    agent_done(&agent);
}

/* More than a window is not on its way, and all of it comes before the end. */
static void output_waits_for_the_client(void **state)
{
    (void)state;
    const size_t all = 300000;
    struct agent agent;
    agent_init(&agent);
    agent.acknowledges = false;
    start(&agent, 1, 1, "head -c 300000 /dev/zero");
    await_output(&agent, WINDOW);
    start(&agent, 1, 2, "exit 0"); /* another one's window is its own */
    await_exits(&agent, 1);
    assert_string_equal(agent.exits.data, "1/2: 0 \n");
    assert_in_range(agent.out.len, WINDOW, WINDOW + CHUNK - 1);
    size_t before = agent.out.len;
    acknowledge(&agent, 1, 1, before - WINDOW + 1); /* one less: there is room for a chunk */
    await_output(&agent, before + 1);
    start(&agent, 1, 3, "exit 0");
    await_exits(&agent, 2);
    assert_in_range(agent.out.len, before + 1, before + CHUNK);
    agent.acknowledges = true;
    acknowledge(&agent, 1, 1, UINT64_MAX); /* more than there is counts as all */
    await_exits(&agent, 3);
    assert_int_equal(agent.out.len, all);
    assert_string_equal(agent.exits.data, "1/2: 0 \n1/3: 0 \n1/1: 0 \n");
    agent_done(&agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_end_go_to_the_asker),
        cmocka_unit_test(programs_are_known_by_asker_and_number),
        cmocka_unit_test(who_is_cancelled_ends_with_its_children),
        cmocka_unit_test(who_leaves_its_pipes_open_has_ended),
        cmocka_unit_test(output_waits_for_the_client),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
