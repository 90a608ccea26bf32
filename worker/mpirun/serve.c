/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/mpirun/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"

#define SHELL "/bin/sh"
#define CHUNK 16384u
#define WINDOW (4u * CHUNK) /* of output on its way, for each program and stream together */
/* A daemon may hold its shell's pipes open without end. */
#define LINGER_MS 300

struct program;

struct stream {
    struct program *program;
    Drarun__Wire__Stream name;
    int fd; /* -1: at its end */
    struct event *readable;
};

struct program {
    LIST_ENTRY(program) entry;
    struct server *server;
    pid_t pid;
    uint64_t id;
    uint32_t source;
    uint64_t under_way;
    bool reaped;
    int code;
    struct stream streams[2];
    struct event *linger;
};

struct server {
    struct event_base *base;
    struct channel *channel;
    struct event *child;
    LIST_HEAD(, program) programs;
};

/* ---- answers ---- */

static void answer(struct server *server, Drarun__Wire__Routed *message, uint32_t destination,
                   uint64_t id)
{
    message->destination = destination;
    message->id = id;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, message);
    channel_send(server->channel, &envelope);
}

static void answer_exit(struct server *server, uint32_t destination, uint64_t id, int code,
                        const char *text)
{
    Drarun__Wire__RemoteExit body = DRARUN__WIRE__REMOTE_EXIT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.code = (uint32_t)code;
    body.text = unconst(text);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT;
    message.remote_exit = &body;
    answer(server, &message, destination, id);
}

static void answer_output(struct stream *stream, uint8_t *data, size_t length)
{
    struct program *program = stream->program;
    Drarun__Wire__RemoteOutput body = DRARUN__WIRE__REMOTE_OUTPUT__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.stream = stream->name;
    body.data.data = data;
    body.data.len = length;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT;
    message.remote_output = &body;
    program->under_way += length;
    answer(program->server, &message, program->source, program->id);
}

/* ---- one program ---- */

static void stream_close(struct stream *stream)
{
    if (stream->readable)
        event_free(TAKE_PTR(stream->readable));
    close_fd(&stream->fd);
}

static void program_free(struct program *program)
{
    LIST_REMOVE(program, entry);
    stream_close(&program->streams[0]);
    stream_close(&program->streams[1]);
    if (program->linger)
        event_free(program->linger);
    free(program);
}

static void finish(struct program *program)
{
    answer_exit(program->server, program->source, program->id, program->code, "");
    program_free(program);
}

static void look(struct program *program);

/* Nothing has come for a while; what is on its way has to arrive first, or more may be behind it.
 */
static void on_linger(evutil_socket_t fd, short what, void *arg)
{
    struct program *program = arg;
    (void)fd, (void)what;
    if (program->under_way > 0)
        look(program);
    else
        finish(program);
}

/* Once it was reaped: ends with its pipes, or when they have been silent for a while. */
static void look(struct program *program)
{
    struct timeval wait = timeval_from_ms(LINGER_MS);
    if (!program->reaped)
        return;
    if (program->streams[0].fd < 0 && program->streams[1].fd < 0) {
        finish(program);
        return;
    }
    if (!program->linger)
        program->linger = evtimer_new(program->server->base, on_linger, program);
    if (!program->linger || evtimer_add(program->linger, &wait) < 0)
        finish(program);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *stream = arg;
    uint8_t data[CHUNK];
    (void)what;
    if (stream->program->under_way >= WINDOW) {
        event_del(stream->readable); /* until the client has written */
        return;
    }
    ssize_t n = read(fd, data, sizeof data);
    if (n > 0) {
        answer_output(stream, data, (size_t)n);
        look(stream->program);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    stream_close(stream);
    look(stream->program);
}

static int stream_open(struct program *program, size_t index, int fd)
{
    struct stream *stream = &program->streams[index];
    stream->fd = fd;
    fd_set_nonblock(fd);
    stream->readable =
        event_new(program->server->base, fd, EV_READ | EV_PERSIST, on_readable, stream);
    return stream->readable && event_add(stream->readable, NULL) == 0 ? 0 : -ENOMEM;
}

__attribute__((noreturn)) static void child(const char *command, const int out[2])
{
    const char *argv[] = {"sh", "-c", command, NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&none);
    setsid();
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(out[0], 1) >= 0 && dup2(out[1], 2) >= 0)
        execv(SHELL, unconst(argv));
    dprintf(2,
            "drarun-rsh: cannot execute " SHELL ": %s: mpirun's daemons need a shell in the "
            "image\n",
            strerror(errno));
    _exit(127);
}

static int fork_program(struct program *program, const char *command)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    int rc = pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ? -errno : 0;
    if (rc == 0 && (program->pid = fork()) == 0)
        child(command, (const int[]){out[1], err[1]});
    if (rc == 0 && program->pid < 0)
        rc = -errno;
    close_fd(&out[1]);
    close_fd(&err[1]);
    if (rc == 0)
        rc = stream_open(program, 0, take_fd(&out[0]));
    if (rc == 0)
        rc = stream_open(program, 1, take_fd(&err[0]));
    close_fd(&out[0]);
    close_fd(&err[0]);
    return rc;
}

static void start(struct server *server, const Drarun__Wire__Routed *message)
{
    struct program *program = calloc(1, sizeof *program);
    if (!program) {
        answer_exit(server, message->source, message->id, 255, "out of memory");
        return;
    }
    *program = (struct program){.server = server, .id = message->id, .source = message->source};
    program->streams[0] = (struct stream){program, DRARUN__WIRE__STREAM__STREAM_STDOUT, -1, NULL};
    program->streams[1] = (struct stream){program, DRARUN__WIRE__STREAM__STREAM_STDERR, -1, NULL};
    LIST_INSERT_HEAD(&server->programs, program, entry);
    int rc = fork_program(program, message->remote_start->command);
    if (rc < 0) {
        answer_exit(server, message->source, message->id, 255, strerror(-rc));
        program_free(program);
    }
}

/* ---- all of them ---- */

static struct program *find(struct server *server, const Drarun__Wire__Routed *message)
{
    struct program *program;
    LIST_FOREACH (program, &server->programs, entry) {
        if (program->id == message->id && program->source == message->source)
            return program;
    }
    return NULL;
}

static void acknowledged(struct program *program, uint64_t bytes)
{
    program->under_way -= bytes < program->under_way ? bytes : program->under_way;
    for (size_t i = 0; i < 2; i++)
        if (program->streams[i].readable)
            event_add(program->streams[i].readable, NULL);
}

/* Nobody reads it any more. */
static void cancel(struct program *program)
{
    /* before its setsid it leads no group */
    if (!program->reaped && kill(-program->pid, SIGTERM) < 0)
        kill(program->pid, SIGTERM);
    stream_close(&program->streams[0]);
    stream_close(&program->streams[1]);
    look(program);
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct server *server = arg;
    const Drarun__Wire__Routed *message = envelope->routed;
    (void)channel;
    if (envelope->body_case != DRARUN__WIRE__ENVELOPE__BODY_ROUTED)
        return;
    struct program *program = find(server, message);
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_START && !program)
        start(server, message);
    else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK && program)
        acknowledged(program, message->remote_ack->bytes);
    else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_CANCEL && program)
        cancel(program);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct server *server = arg;
    (void)channel, (void)err;
    event_base_loopbreak(server->base);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    struct program *program;
    int status;
    pid_t pid;
    (void)fd, (void)what;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        LIST_FOREACH (program, &server->programs, entry) {
            if (program->pid != pid)
                continue;
            program->reaped = true;
            program->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            look(program);
            break;
        }
}

int remote_serve(int fd)
{
    struct server server = {.base = event_base_new()};
    signal(SIGPIPE, SIG_IGN);
    LIST_INIT(&server.programs);
    if (!server.base) {
        close(fd);
        return 70;
    }
    fd_set_cloexec(fd);
    server.child = evsignal_new(server.base, SIGCHLD, on_child, &server);
    server.channel = channel_new_take(server.base, fd, on_message, on_closed, &server);
    bool good = server.child && server.channel && evsignal_add(server.child, NULL) == 0;
    if (good)
        event_base_dispatch(server.base);
    while (!LIST_EMPTY(&server.programs))
        program_free(LIST_FIRST(&server.programs));
    channel_free(server.channel);
    if (server.child)
        event_free(server.child);
    event_base_loop(server.base, EVLOOP_NONBLOCK);
    event_base_free(server.base);
    return good ? 0 : 70;
}
