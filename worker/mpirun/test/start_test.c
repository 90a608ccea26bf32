/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "worker/mpirun/start.h"

#define ARGS_MAX 12

/* What the agent answers to the request; acknowledged: of the output, after which it tells the end.
 */
enum answer { EXIT, HERE, CLOSE, OUTPUT };

struct agent {
    enum answer answer;
    uint32_t code;
    const char *text; /* of the exit, or the output on stderr */
    char host[64], command[256];
    uint64_t acknowledged;
    struct event_base *base;
};

static char folder[] = "/tmp/start_test.XXXXXX";
static struct sockaddr_un place = {.sun_family = AF_UNIX};
static int listening;

static void send_body(struct channel *channel, Drarun__Wire__Routed *message)
{
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, message);
    assert_int_equal(channel_send(channel, &envelope), 0);
}

static void send_exit(struct channel *channel, uint32_t code, const char *text)
{
    Drarun__Wire__RemoteExit body = DRARUN__WIRE__REMOTE_EXIT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.code = code;
    body.text = unconst(text);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT;
    message.remote_exit = &body;
    send_body(channel, &message);
}

static void send_output(struct channel *channel, Drarun__Wire__Stream stream, const char *text)
{
    Drarun__Wire__RemoteOutput body = DRARUN__WIRE__REMOTE_OUTPUT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.stream = stream;
    body.data.data = unconst(text);
    body.data.len = strlen(text);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT;
    message.remote_output = &body;
    send_body(channel, &message);
}

static void answer(struct agent *agent, struct channel *channel, Drarun__Wire__Routed *request)
{
    switch (agent->answer) {
    case EXIT:
        send_exit(channel, agent->code, agent->text);
        break;
    case HERE:
        send_body(channel, request);
        break;
    case CLOSE:
        event_base_loopbreak(agent->base);
        break;
    case OUTPUT:
        send_output(channel, DRARUN__WIRE__STREAM__STREAM_STDOUT, "to stdout\n");
        send_output(channel, DRARUN__WIRE__STREAM__STREAM_STDERR, agent->text);
    }
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct agent *agent = arg;
    assert_int_equal(envelope->body_case, DRARUN__WIRE__ENVELOPE__BODY_ROUTED);
    Drarun__Wire__Routed *message = envelope->routed;
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_START) {
        assert_string_equal(agent->host, "");
        snprintf(agent->host, sizeof agent->host, "%s", message->remote_start->host);
        snprintf(agent->command, sizeof agent->command, "%s", message->remote_start->command);
        answer(agent, channel, message);
        return;
    }
    assert_int_equal(message->body_case, DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK);
    assert_int_equal(message->remote_ack->bytes, agent->acknowledged == 0 ? 10 : 3);
    agent->acknowledged += message->remote_ack->bytes;
    if (agent->acknowledged == 13)
        send_exit(channel, agent->code, "");
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct agent *agent = arg;
    (void)channel, (void)err;
    event_base_loopbreak(agent->base);
}

static void serve(struct agent *agent)
{
    const struct timeval most = {.tv_sec = 60};
    agent->base = event_base_new();
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct channel *channel = channel_new_take(agent->base, fd, on_message, on_closed, agent);
    assert_non_null(channel);
    event_base_loopexit(agent->base, &most);
    event_base_dispatch(agent->base);
    channel_free(channel);
    event_base_loop(agent->base, EVLOOP_NONBLOCK);
    event_base_free(agent->base);
}

static void read_all(int fd, char *text, size_t size)
{
    size_t length = 0;
    for (ssize_t n; (n = read(fd, text + length, size - 1 - length)) > 0; length += (size_t)n)
        ;
    text[length] = '\0';
    close(fd);
}

/* Its exit status; agent: NULL: it connects to none. */
static int call(const char *const *argv, struct agent *agent, char out[256], char err[512])
{
    int to[2], errors[2], status, argc = 0;
    while (argv[argc])
        argc++;
    assert_int_equal(pipe(to) | pipe(errors), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(listening);
        if (dup2(to[1], 1) < 0 || dup2(errors[1], 2) < 0)
            _exit(99);
        close(to[1]), close(errors[1]);
        _exit(remote_start(argc, unconst(argv)));
    }
    close(to[1]), close(errors[1]);
    if (agent)
        serve(agent);
    read_all(to[0], out, 256);
    read_all(errors[0], err, 512);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(place.sun_path, sizeof place.sun_path, "%s/remote", folder);
    listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setenv("DRARUN_REMOTE", place.sun_path, 1);
    return bind(listening, (struct sockaddr *)&place, sizeof place) | listen(listening, 4);
}

static int tear_down(void **state)
{
    (void)state;
    return close(listening) | unlink(place.sun_path) | rmdir(folder);
}

static void assert_asks(const char *const *argv, const char *host, const char *command)
{
    struct agent agent = {.answer = EXIT, .code = 42, .text = ""};
    char out[256], err[512];
    assert_int_equal(call(argv, &agent, out, err), 42);
    assert_string_equal(agent.host, host);
    assert_string_equal(agent.command, command);
    assert_string_equal(out, "");
    assert_string_equal(err, "");
}

static void arguments_are_sshs(void **state)
{
    (void)state;
    static const struct {
        const char *argv[ARGS_MAX], *host, *command;
    } table[] = {
        {{"rsh", "h", "orted"}, "h", "orted"},
        {{"rsh", "h", "a", "b  c", "", "-d"}, "h", "a b  c  -d"},
        {{"rsh", "-x", "root@h", "orted", "-l"}, "root@h", "orted -l"},
        {{"rsh", "-l", "me", "-p22", "-o", "A=b", "-oC=d", "h", "x"}, "h", "x"},
        {{"rsh", "--", "-h", "x"}, "-h", "x"},
        {{"rsh", "-q", "--", "h", "x"}, "h", "x"},
        {{"rsh", "-", "x"}, "-", "x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        assert_asks(table[i].argv, table[i].host, table[i].command);
    for (const char *option = "BbcDEeFIiJLlmOoPpRSWw46AaCfGgKkMNnqsTtVvXxYy"; *option; option++) {
        bool valued = strchr("BbcDEeFIiJLlmOoPpRSWw", *option) != NULL;
        char word[] = {'-', *option, '\0'};
        const char *const argv[] = {"rsh", word, "v", "h", "x", NULL};
        assert_asks(argv, valued ? "h" : "v", valued ? "x" : "h x");
    }
}

static void what_lacks_is_named(void **state)
{
    (void)state;
    static const char *const lacking[][ARGS_MAX] = {
        {"rsh"}, {"rsh", "h"}, {"rsh", "-l"}, {"rsh", "-l", "h"}, {"rsh", "--"}, {"rsh", "--", "h"},
    };
    const char *const argv[] = {"rsh", "h", "x", NULL};
    char out[256], err[512], path[128], expected[512];
    for (size_t i = 0; i < ARRAY_LEN(lacking); i++) {
        assert_int_equal(call(lacking[i], NULL, out, err), 255);
        assert_string_equal(err, "drarun-rsh: expected a host and a command\n");
    }
    memset(path, 'x', sizeof path);
    path[sizeof place.sun_path] = '\0';
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(i == 0 ? unsetenv("DRARUN_REMOTE") : setenv("DRARUN_REMOTE", path, 1), 0);
        assert_int_equal(call(argv, NULL, out, err), 255);
        assert_string_equal(err, "drarun-rsh: DRARUN_REMOTE is not set: this is for programs under "
                                 "drarun --launch mpirun\n");
    }
    path[sizeof place.sun_path - 1] = '\0';
    setenv("DRARUN_REMOTE", path, 1);
    assert_int_equal(call(argv, NULL, out, err), 255);
    snprintf(expected, sizeof expected, "drarun-rsh: %s: No such file or directory\n", path);
    assert_string_equal(err, expected);
    setenv("DRARUN_REMOTE", place.sun_path, 1);
}

static void the_answer_decides_the_end(void **state)
{
    (void)state;
    static const struct {
        struct agent agent;
        const char *out, *err;
        int status;
    } table[] = {
        {{.answer = EXIT, .code = 0, .text = ""}, "", "", 0},
        {{.answer = EXIT, .code = 255, .text = "no worker w"},
         "",
         "drarun-rsh: no worker w\n",
         255},
        {{.answer = HERE}, "here\n", "", 9},
        {{.answer = CLOSE}, "", "drarun-rsh: the agent is gone: it closed the connection\n", 255},
        {{.answer = OUTPUT, .code = 3, .text = "err"}, "to stdout\n", "err", 3},
    };
    const char *const argv[] = {"rsh", "h", "echo", "here;", "exit", "9", NULL};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct agent agent = table[i].agent;
        char out[256], err[512];
        assert_int_equal(call(argv, &agent, out, err), table[i].status);
        assert_string_equal(agent.command, "echo here; exit 9");
        assert_string_equal(out, table[i].out);
        assert_string_equal(err, table[i].err);
        assert_int_equal(agent.acknowledged, agent.answer == OUTPUT ? 13 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_sshs),
        cmocka_unit_test(what_lacks_is_named),
        cmocka_unit_test(the_answer_decides_the_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
