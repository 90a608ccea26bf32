/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/mpirun/start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/channel.h"

#define SHELL "/bin/sh"
#define FAILED 255 /* ssh's own status */

struct start {
    struct event_base *base;
    struct channel *channel;
    bool here; /* the host is this worker */
    int status;
};

bool remote_start_is(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    return strcmp(slash ? slash + 1 : argv0, "drarun-rsh") == 0;
}

/* ssh's options that have a value, OpenSSH 9. */
static bool takes_value(char option)
{
    return strchr("BbcDEeFIiJLlmOoPpRSWw", option) != NULL;
}

/* Index of the host; argc without one. */
static int skip_options(int argc, char **argv)
{
    int at = 1;
    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (strcmp(argv[at], "--") == 0)
            return at + 1;
        if (takes_value(argv[at][1]) && argv[at][2] == '\0')
            at++;
    }
    return at < argc ? at : argc;
}

static void acknowledge(struct start *start, size_t bytes)
{
    Drarun__Wire__RemoteAck body = DRARUN__WIRE__REMOTE_ACK__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.bytes = bytes;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_ACK;
    message.remote_ack = &body;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, &message);
    channel_send(start->channel, &envelope);
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *envelope, void *arg)
{
    struct start *start = arg;
    (void)channel;
    if (envelope->body_case != DRARUN__WIRE__ENVELOPE__BODY_ROUTED)
        return;
    const Drarun__Wire__Routed *message = envelope->routed;
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_OUTPUT) {
        const Drarun__Wire__RemoteOutput *output = message->remote_output;
        bool err = output->stream == DRARUN__WIRE__STREAM__STREAM_STDERR;
        /* when the reader has gone, SIGPIPE ends us, as with ssh */
        fd_write_all(err ? STDERR_FILENO : STDOUT_FILENO, output->data.data, output->data.len);
        acknowledge(start, output->data.len);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_EXIT) {
        if (message->remote_exit->text[0])
            log_error("%s", message->remote_exit->text);
        start->status = (int)message->remote_exit->code;
        event_base_loopbreak(start->base);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_REMOTE_START) {
        start->here = true;
        event_base_loopbreak(start->base);
    }
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct start *start = arg;
    (void)channel;
    log_error("the agent is gone: %s", err->code ? err->text : "it closed the connection");
    event_base_loopbreak(start->base);
}

static int connect_agent(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *path = getenv("DRARUN_REMOTE");
    if (!path || strlen(path) >= sizeof at.sun_path) {
        log_error("DRARUN_REMOTE is not set: this is for programs under drarun --launch mpirun");
        return -1;
    }
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        log_error("%s: %s", path, strerror(errno));
        close_fd(&fd);
        return -1;
    }
    fd_set_nonblock(fd);
    return fd;
}

static void ask(struct start *start, const char *host, const char *command)
{
    Drarun__Wire__RemoteStart body = DRARUN__WIRE__REMOTE_START__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    body.host = unconst(host);
    body.command = unconst(command);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_START;
    message.remote_start = &body;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, &message);
    channel_send(start->channel, &envelope);
}

static int run(const char *host, const char *command)
{
    struct start start = {.base = event_base_new(), .status = FAILED};
    int fd = start.base ? connect_agent() : -1;
    if (fd >= 0)
        start.channel = channel_new_take(start.base, fd, on_message, on_closed, &start);
    if (start.channel) {
        ask(&start, host, command);
        event_base_dispatch(start.base);
    }
    channel_free(start.channel);
    if (start.base) {
        event_base_loop(start.base, EVLOOP_NONBLOCK);
        event_base_free(start.base);
    }
    if (start.here) {
        execl(SHELL, "sh", "-c", command, (char *)NULL);
        log_error("cannot execute " SHELL ": %s: mpirun's daemons need a shell in the image",
                  strerror(errno));
    }
    return start.status;
}

int remote_start(int argc, char **argv)
{
    struct buf command = BUF_INIT;
    log_setup("drarun-rsh", LOG_NORMAL);
    int at = skip_options(argc, argv);
    if (at + 1 >= argc) {
        log_error("expected a host and a command");
        return FAILED;
    }
    /* as ssh: words joined by spaces, for the shell on the other side */
    for (int i = at + 1; i < argc; i++)
        buf_printf(&command, "%s%s", i > at + 1 ? " " : "", argv[i]);
    int status = command.failed ? FAILED : run(argv[at], command.data);
    buf_done(&command);
    return status;
}
