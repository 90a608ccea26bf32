/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

/* Bytes that are done with stay at the queue's start until there are this many, so that a queue is
 * not moved for each small write. */
#define COMPACT_AT ((size_t)64 * 1024)

struct input_pipe {
    struct rank_input *in;
    int fd;
    uint64_t at; /* bytes of the whole input that it has got */
    struct event *writable;
};

struct rank_input {
    struct event_base *base;
    rank_input_done_fn done;
    void *arg;
    struct buf queue;
    size_t skip;   /* bytes at the queue's start that are done with */
    uint64_t from; /* position in the whole input of the first byte not done with */
    bool ended;
    size_t pipe_count;
    struct input_pipe pipes[];
};

static uint64_t end_of_input(const struct rank_input *in)
{
    return in->from + (in->queue.len - in->skip);
}

static void close_pipe(struct input_pipe *pipe)
{
    if (pipe->writable)
        event_free(pipe->writable);
    pipe->writable = NULL;
    close_fd(&pipe->fd);
}

/* Gives back what every open pipe has got. */
static void settle(struct rank_input *in)
{
    uint64_t least = end_of_input(in);
    for (size_t i = 0; i < in->pipe_count; i++)
        if (in->pipes[i].fd >= 0 && in->pipes[i].at < least)
            least = in->pipes[i].at;
    size_t bytes = (size_t)(least - in->from);
    if (bytes == 0)
        return;
    in->from = least;
    in->skip += bytes;
    if (in->skip == in->queue.len) {
        buf_done(&in->queue);
        in->skip = 0;
    } else if (in->skip >= COMPACT_AT && in->skip >= in->queue.len / 2) {
        buf_consume(&in->queue, in->skip);
        in->skip = 0;
    }
    in->done(in->arg, bytes);
}

/* Writes what the pipe takes. False when it is done with: at the end, or nobody reads it. */
static bool pump(struct input_pipe *pipe)
{
    const struct rank_input *in = pipe->in;
    while (pipe->at < end_of_input(in)) {
        const char *data = in->queue.data + in->skip + (pipe->at - in->from);
        ssize_t n = write(pipe->fd, data, (size_t)(end_of_input(in) - pipe->at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return event_add(pipe->writable, NULL) == 0;
        if (n < 0)
            return false;
        pipe->at += (uint64_t)n;
    }
    return !in->ended;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct input_pipe *pipe = arg;
    struct rank_input *in = pipe->in;
    (void)fd;
    (void)what;
    if (!pump(pipe))
        close_pipe(pipe);
    settle(in);
}

int rank_input_feed(struct rank_input *in, const void *data, size_t length)
{
    if (in->ended)
        return length == 0 ? 0 : -EPIPE;
    if (!buf_reserve(&in->queue, length)) {
        in->queue.failed = false;
        return -ENOMEM;
    }
    buf_add(&in->queue, data, length);
    in->ended = length == 0;
    for (size_t i = 0; i < in->pipe_count; i++)
        if (in->pipes[i].fd >= 0 && !pump(&in->pipes[i]))
            close_pipe(&in->pipes[i]);
    settle(in);
    return 0;
}

int rank_input_open(struct rank_input *in, size_t slot, int *ret_fd)
{
    struct input_pipe *pipe = &in->pipes[slot];
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    int rc = fd_set_nonblock(fds[1]);
    if (rc == 0 && !in->ended) {
        pipe->writable = event_new(in->base, fds[1], EV_WRITE, on_writable, pipe);
        rc = pipe->writable ? 0 : -ENOMEM;
    }
    if (rc < 0 || in->ended)
        close_fd(&fds[1]);
    if (rc < 0) {
        close(fds[0]);
        return rc;
    }
    pipe->fd = fds[1];
    pipe->at = end_of_input(in);
    *ret_fd = fds[0];
    return 0;
}

void rank_input_drop(struct rank_input *in, size_t slot)
{
    if (slot >= in->pipe_count || in->pipes[slot].fd < 0) /* one that came later reads nothing */
        return;
    close_pipe(&in->pipes[slot]);
    settle(in);
}

struct rank_input *rank_input_new(struct event_base *base, size_t slots, rank_input_done_fn done,
                                  void *arg)
{
    struct rank_input *in = calloc(1, sizeof *in + slots * sizeof in->pipes[0]);
    if (!in)
        return NULL;
    in->base = base;
    in->done = done;
    in->arg = arg;
    in->pipe_count = slots;
    for (size_t i = 0; i < slots; i++)
        in->pipes[i] = (struct input_pipe){.in = in, .fd = -1};
    return in;
}

void rank_input_free(struct rank_input *in)
{
    if (!in)
        return;
    for (size_t i = 0; i < in->pipe_count; i++)
        close_pipe(&in->pipes[i]);
    buf_done(&in->queue);
    free(in);
}
