/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define INPUT_WINDOW (256u * 1024) /* bytes on their way to one agent */
#define INPUT_PIECE (32u * 1024)

struct input {
    struct input_owner owner;
    int fd;
    int own;       /* a second description of a pipe or terminal, for O_NONBLOCK; else -1 */
    bool pollable; /* regular files and most devices are not: epoll refuses them */
    bool socket;
    bool terminal;
    bool started, ended;
    bool background; /* a terminal that we may not read now */
    struct event *event;
    struct event *news; /* edge-triggered, in the background: perhaps the terminal is gone */
    uint64_t *underway; /* by agent */
    uint32_t agents;
    char piece[INPUT_PIECE];
};

bool input_is_there(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    bool null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
    /* opened for writing only, as when a shell closed it and something else took its number */
    int flags = fcntl(fd, F_GETFL);
    return !null && flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
}

static bool has_room(const struct input *input)
{
    for (uint32_t i = 0; i < input->agents; i++)
        if (input->underway[i] + INPUT_PIECE > INPUT_WINDOW)
            return false;
    return true;
}

/* Level-triggered: reads from now on if and only if it should. */
static void look(struct input *input)
{
    /* a terminal that controls nobody here, as in some containers, stops nobody */
    pid_t group = input->terminal ? tcgetpgrp(input->fd) : -1;
    input->background = group >= 0 && group != getpgrp();
    bool open = input->started && !input->ended;
    bool wanted = open && !input->background && has_room(input);
    if (!wanted)
        event_del(input->event);
    /* libevent has one kind of events a descriptor at a time */
    if (input->news && open && input->background)
        event_add(input->news, NULL);
    else if (input->news)
        event_del(input->news);
    if (!wanted)
        return;
    if (input->pollable)
        event_add(input->event, NULL);
    else
        event_active(input->event, EV_READ, 0);
}

static ssize_t read_piece(struct input *input)
{
    if (input->socket)
        return recv(input->fd, input->piece, sizeof input->piece, MSG_DONTWAIT);
    return read(input->own >= 0 ? input->own : input->fd, input->piece, sizeof input->piece);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct input *input = arg;
    (void)fd, (void)what;
    if (input->ended)
        return;
    look(input);
    if (input->background || !has_room(input))
        return;
    ssize_t n = read_piece(input);
    /* EIO: the terminal has passed to another job between our look and the read */
    if (n < 0 && (errno == EAGAIN || errno == EINTR || (errno == EIO && input->terminal))) {
        look(input);
        return;
    }
    for (uint32_t i = 0; n > 0 && i < input->agents; i++)
        input->underway[i] += (uint64_t)n;
    /* a read error is an end: the rank finds out as it would have by itself */
    input->ended = n <= 0;
    input->owner.data(input->owner.arg, input->piece, n > 0 ? (size_t)n : 0);
    look(input);
}

/* What is typed goes to another job, whose it is; a terminal that is gone is nobody's, and ends. */
static void on_news(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    look(arg);
}

static void classify(struct input *input)
{
    struct stat st;
    char path[32];
    if (fstat(input->fd, &st) < 0)
        return;
    input->terminal = isatty(input->fd);
    input->socket = S_ISSOCK(st.st_mode);
    input->pollable = input->terminal || input->socket || S_ISFIFO(st.st_mode);
    if (!input->pollable || input->socket)
        return;
    /* its flags are shared with the process that gave it to us; where it cannot be opened again,
     * reading after the loop has seen it readable is nearly as good */
    snprintf(path, sizeof path, "/proc/self/fd/%d", input->fd);
    input->own = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

struct input *input_new(struct event_base *base, int fd, uint32_t agents,
                        const struct input_owner *owner)
{
    struct input *input = calloc(1, sizeof *input);
    if (!input)
        return NULL;
    input->owner = *owner;
    input->fd = fd;
    input->own = -1;
    input->agents = agents;
    classify(input);
    input->underway = calloc(agents + 1, sizeof *input->underway);
    int polled = !input->pollable ? -1 : input->own >= 0 ? input->own : fd;
    input->event = event_new(base, polled, EV_READ, on_readable, input);
    if (input->terminal)
        input->news = event_new(base, polled, EV_READ | EV_ET | EV_PERSIST, on_news, input);
    if (!input->underway || !input->event || (input->terminal && !input->news)) {
        input_free(input);
        return NULL;
    }
    return input;
}

void input_free(struct input *input)
{
    if (!input)
        return;
    if (input->event)
        event_free(input->event);
    if (input->news)
        event_free(input->news);
    close_fd(&input->own);
    free(input->underway);
    free(input);
}

void input_start(struct input *input)
{
    input->started = true;
    look(input);
}

void input_stop(struct input *input)
{
    input->ended = true;
    look(input);
}

bool input_passed(struct input *input, uint32_t agent, uint64_t bytes)
{
    if (agent >= input->agents || bytes > input->underway[agent])
        return false;
    input->underway[agent] -= bytes;
    look(input);
    return true;
}

void input_look(struct input *input)
{
    look(input);
}
