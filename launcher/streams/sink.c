/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <event2/buffer.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define WRITE_MAX (256u * 1024)

enum sink_kind {
    SINK_FILE = 1, /* regular files and devices: a write does not wait for a reader */
    SINK_OWN,      /* a pipe or terminal, opened again with O_NONBLOCK for ourselves */
    SINK_SOCKET,   /* MSG_DONTWAIT */
    SINK_CAREFUL,  /* a pipe or terminal that cannot be opened again: small writes after poll */
};

struct sink {
    int fd;  /* the caller's */
    int own; /* SINK_OWN, else -1 */
    enum sink_kind kind;
    bool terminal, hung_up;
    const char *name;
    struct sink_owner owner;
    struct evbuffer *queue;
    struct event *writable; /* NULL for SINK_FILE */
    uint64_t added, done, written;
    bool gone;                 /* broken or discarded */
    struct sink_reader reader; /* without functions: none */
    struct buf shown;          /* of the last bytes, by the reader */
};

/* A pipe's or terminal's flags belong to the open file description, which our parent and its other
 * children share; a second description of our own may be non-blocking. */
static int open_again(int fd)
{
    char path[32];
    int flags = fcntl(fd, F_GETFL);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path,
                O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (flags > 0 ? flags & O_APPEND : 0));
}

bool sink_is_same_file(int fd, int other)
{
    struct stat one, two;
    return fstat(fd, &one) == 0 && fstat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino && one.st_rdev == two.st_rdev;
}

static void classify(struct sink *sink)
{
    struct stat st;
    sink->kind = SINK_FILE;
    if (fstat(sink->fd, &st) < 0)
        return;
    bool answers = isatty(sink->fd);
    /* one that has hung up says EIO, a device of another kind ENOTTY */
    sink->terminal = answers || (S_ISCHR(st.st_mode) && errno == EIO);
    if (S_ISSOCK(st.st_mode))
        sink->kind = SINK_SOCKET;
    else if (S_ISFIFO(st.st_mode) || answers) {
        sink->own = open_again(sink->fd);
        sink->kind = sink->own >= 0 ? SINK_OWN : SINK_CAREFUL;
    }
}

static ssize_t write_some(const struct sink *sink, const void *data, size_t length)
{
    struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
    if (length > WRITE_MAX)
        length = WRITE_MAX;
    switch (sink->kind) {
    case SINK_FILE:
        return write(sink->fd, data, length);
    case SINK_OWN:
        return write(sink->own, data, length);
    case SINK_SOCKET:
        return send(sink->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_CAREFUL:
        break;
    }
    /* pipe(7): where poll says writable, PIPE_BUF bytes fit; terminals behave alike */
    if (poll(&ready, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(sink->fd, data, length < PIPE_BUF ? length : PIPE_BUF);
}

void sink_discard(struct sink *sink)
{
    evbuffer_drain(sink->queue, evbuffer_get_length(sink->queue));
    sink->done = sink->added;
    sink->gone = true;
    if (sink->writable)
        event_del(sink->writable);
}

static void break_down(struct sink *sink, int code)
{
    struct drarun_error err = {0};
    sink->hung_up = code == EIO && sink->terminal;
    if (sink->hung_up)
        error_set(&err, EPIPE, "%s is closed: its terminal has hung up", sink->name);
    else if (code == EPIPE || code == ECONNRESET)
        error_set(&err, EPIPE, "%s is closed: nobody reads it any more", sink->name);
    else
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, code, "cannot write to %s: %s", sink->name,
                   strerror(code));
    sink_discard(sink);
    sink->owner.broken(sink->owner.arg, &err);
}

/* How much of it went out; less than length when the reader is slow or gone. */
static size_t write_now(struct sink *sink, const char *data, size_t length)
{
    size_t written = 0;
    while (written < length) {
        ssize_t n = write_some(sink, data + written, length - written);
        if (n >= 0) {
            written += (size_t)n;
            sink->written += (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || sink->kind == SINK_FILE) {
            int code = errno;
            sink->done += written;
            break_down(sink, code);
            return length;
        }
        break;
    }
    sink->done += written;
    return written;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct sink *sink = arg;
    struct evbuffer_iovec piece;
    (void)fd, (void)what;
    if (evbuffer_peek(sink->queue, -1, NULL, &piece, 1) > 0) {
        size_t n = write_now(sink, piece.iov_base, piece.iov_len);
        if (!sink->gone)
            evbuffer_drain(sink->queue, n);
    }
    if (!sink->gone && evbuffer_get_length(sink->queue) == 0)
        event_del(sink->writable);
    sink->owner.progress(sink->owner.arg);
}

struct sink *sink_new(struct event_base *base, int fd, const char *name,
                      const struct sink_owner *owner)
{
    struct sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return NULL;
    *sink = (struct sink){.fd = fd, .own = -1, .name = name, .owner = *owner};
    classify(sink);
    sink->queue = evbuffer_new();
    if (sink->kind != SINK_FILE)
        sink->writable = event_new(base, sink->own >= 0 ? sink->own : fd, EV_WRITE | EV_PERSIST,
                                   on_writable, sink);
    if (!sink->queue || (sink->kind != SINK_FILE && !sink->writable)) {
        sink_free(sink);
        return NULL;
    }
    return sink;
}

/* What the reader still held back, as far as it goes in at once. */
static void show_last(struct sink *sink)
{
    buf_reset(&sink->shown);
    sink->reader.end(sink->reader.arg, &sink->shown);
    if (sink->shown.len > 0 && !sink->gone && evbuffer_get_length(sink->queue) == 0)
        (void)!write_some(sink, sink->shown.data, sink->shown.len);
}

void sink_free(struct sink *sink)
{
    if (!sink)
        return;
    if (sink->reader.end)
        show_last(sink);
    buf_done(&sink->shown);
    if (sink->writable)
        event_free(sink->writable);
    if (sink->queue)
        evbuffer_free(sink->queue);
    close_fd(&sink->own);
    free(sink);
}

static void add(struct sink *sink, const void *data, size_t length)
{
    sink->added += length;
    if (sink->gone) {
        sink->done = sink->added;
        return;
    }
    size_t written = 0;
    if (evbuffer_get_length(sink->queue) == 0)
        written = write_now(sink, data, length);
    if (sink->gone || written == length)
        return;
    if (evbuffer_add(sink->queue, (const char *)data + written, length - written) < 0 ||
        event_add(sink->writable, NULL) < 0)
        break_down(sink, ENOMEM);
}

void sink_set_reader(struct sink *sink, const struct sink_reader *reader)
{
    sink->reader = *reader;
}

/* What came is not what was read: nothing more is. */
static void fail_reader(struct sink *sink, int code)
{
    struct drarun_error err = {0};
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, code, "cannot read what is for %s: %s", sink->name,
               strerror(code));
    sink->reader = (struct sink_reader){0};
    sink_discard(sink);
    sink->owner.broken(sink->owner.arg, &err);
}

void sink_add(struct sink *sink, const void *data, size_t length)
{
    if (!sink->reader.read) {
        add(sink, data, length);
        return;
    }
    buf_reset(&sink->shown);
    int rc = sink->reader.read(sink->reader.arg, data, length, &sink->shown);
    if (rc == 0 && sink->shown.failed)
        rc = -ENOMEM;
    if (rc < 0)
        fail_reader(sink, -rc);
    else if (sink->shown.len > 0)
        add(sink, sink->shown.data, sink->shown.len);
}

bool sink_has_hung_up(const struct sink *sink)
{
    return sink->hung_up;
}

uint64_t sink_added(const struct sink *sink)
{
    return sink->added;
}

uint64_t sink_done(const struct sink *sink)
{
    return sink->done;
}

uint64_t sink_written(const struct sink *sink)
{
    return sink->written;
}
