/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "worker/ranks/tail.h"

/* What one read may cause to be passed on: the unfinished line before it, and itself. Reading only
 * while this much of the window is free keeps it whole. */
#define ROOM_TO_READ (2 * (size_t)RANKS_LINE_MAX)
/* The launcher gives credit back in steps of this many bytes. */
#define CREDIT_STEP (64 * 1024)
/* While the launcher waits for the rest of a line, it holds back all other output of this agent.
 * This much of the window stays free for that rest: without it, the two would wait for each other.
 */
#define ROOM_FOR_OPEN_LINE (ROOM_TO_READ + CREDIT_STEP)
/* A rank that is silent for as long as the launcher waits leaves the room to the next open line. */
#define OPEN_LINE_MS 1000
/* Pipes looked at before the loop gets its turn. */
#define BATCH 64
#define UNLIMITED SIZE_MAX
/* What a waiting text costs beside its bytes: the library keeps the request, and we a copy. */
#define TEXT_COST 1024u

/* What a rank says beside its pipe. */
struct text {
    STAILQ_ENTRY(text) link;
    const char *data; /* borrowed */
    size_t length, passed;
    uint64_t behind; /* bytes of the pipe that come before it, since its start */
    int64_t said_us;
    void *token;
};

/* Open: fd >= 0. Finished: fd < 0 and nothing held or to be said. */
struct pipe_end {
    uint32_t rank;
    enum rank_stream stream;
    int fd;
    size_t left;         /* given up: bytes still to be read */
    struct buf held;     /* the unfinished line, at most RANKS_LINE_MAX */
    uint64_t read_bytes; /* in all */
    int64_t passed_us;   /* when bytes were last read, or the rank's text was passed on */
    struct tail *tail;   /* NULL for stdout */
    bool open;           /* the start of a line was passed on, its end was not: in open_lines */
    bool inside;         /* that line is the pipe's, and no text has broken it */
    STAILQ_HEAD(, text) texts;
    size_t text_cost;   /* of those */
    const void *newest; /* the token of the last of them */
    TAILQ_ENTRY(pipe_end) link;
    TAILQ_ENTRY(pipe_end) speaker; /* in speakers while it has texts */
};

TAILQ_HEAD(pipe_end_list, pipe_end);

struct slot {
    struct pipe_end ends[2]; /* stdout, stderr */
    struct tail tail;
};

struct rank_output {
    struct rank_output_owner owner;
    struct slot **slots; /* which stay where they are: the epoll set points into them */
    size_t slot_count;
    size_t held_ends;                /* ends with an unfinished line */
    struct pipe_end_list open_lines; /* in the order in which the launcher waits for them */
    struct pipe_end_list speakers;   /* ends with texts, in the order of their turns */
    bool pipes_turn;                 /* texts were passed on since a pipe was read */
    size_t in_flight;                /* passed on and not given back */
    int64_t read_us;                 /* when bytes were last read */
    bool dropped[2];
    int epoll;
    struct event *ready;      /* any pipe, while there is room for all */
    struct event *line_ready; /* the pipe of line_end, while there is room for its line alone */
    const struct pipe_end *line_end;
    struct event *silence;
    char *chunk; /* RANKS_LINE_MAX bytes, shared by all reads */
};

static bool has_room(const struct rank_output *out, size_t bytes)
{
    return out->in_flight + bytes <= RANKS_OUTPUT_WINDOW;
}

static bool has_room_for_all(const struct rank_output *out)
{
    size_t reserved = TAILQ_EMPTY(&out->open_lines) ? 0 : ROOM_FOR_OPEN_LINE;
    return has_room(out, ROOM_TO_READ + reserved);
}

static bool is_finished(const struct pipe_end *end)
{
    return end->fd < 0 && end->held.len == 0 && STAILQ_EMPTY(&end->texts);
}

bool rank_output_finished(const struct rank_output *out, size_t slot)
{
    const struct slot *s = out->slots[slot];
    return is_finished(&s->ends[0]) && is_finished(&s->ends[1]);
}

const char *rank_output_stderr_tail(const struct rank_output *out, size_t slot, size_t *ret_length)
{
    return tail_text(&out->slots[slot]->tail, ret_length);
}

int64_t rank_output_active_us(const struct rank_output *out)
{
    return has_room_for_all(out) ? out->read_us : clock_us();
}

void rank_output_forget_tail(struct rank_output *out, size_t slot)
{
    struct slot *s = out->slots[slot];
    s->ends[1].tail = NULL;
    tail_done(&s->tail);
}

/* The rank has written nothing since its last bytes. That time passes is no proof of it: while the
 * window is full, nobody reads. */
static bool is_silent(const struct pipe_end *end, int64_t ms)
{
    int unread = 0;
    return end->passed_us <= clock_us() - ms * 1000 &&
           (ioctl(end->fd, FIONREAD, &unread) < 0 || unread == 0);
}

/* The end whose line the launcher waits for. It breaks the line of a rank that stays silent, and
 * then waits for the next one. */
static struct pipe_end *first_open_line(const struct rank_output *out)
{
    struct pipe_end *end;
    TAILQ_FOREACH (end, &out->open_lines, link)
        if (!is_silent(end, OPEN_LINE_MS))
            return end;
    return TAILQ_FIRST(&out->open_lines);
}

static void set_watched(struct event *event, short what, bool watched)
{
    if (watched == (event_pending(event, what, NULL) != 0))
        return;
    if (watched)
        event_add(event, NULL);
    else
        event_del(event);
}

static void on_line_ready(evutil_socket_t fd, short what, void *arg);

/* end: NULL for none. */
static void watch_line(struct rank_output *out, const struct pipe_end *end)
{
    if (end == out->line_end)
        return;
    event_del(out->line_ready);
    out->line_end = end;
    if (end && (event_assign(out->line_ready, event_get_base(out->ready), end->fd,
                             EV_READ | EV_PERSIST, on_line_ready, out) < 0 ||
                event_add(out->line_ready, NULL) < 0))
        out->line_end = NULL; /* the next turn of the silence timer tries again */
}

/* Reads when there is room, and passes held lines and texts on when it is time: both follow from
 * the state, so this may be called at any time. */
static void watch(struct rank_output *out)
{
    const struct timeval silence = timeval_from_ms(RANK_OUTPUT_SILENCE_MS);
    bool room = has_room_for_all(out);
    bool line_alone = !room && has_room(out, ROOM_TO_READ) && !TAILQ_EMPTY(&out->open_lines);
    set_watched(out->ready, EV_READ, room);
    watch_line(out, line_alone ? first_open_line(out) : NULL);
    bool waits = out->held_ends > 0 || !TAILQ_EMPTY(&out->speakers);
    if (((room && waits) || line_alone) && !event_pending(out->silence, EV_TIMEOUT, NULL) &&
        event_add(out->silence, &silence) < 0)
        event_active(out->silence, EV_TIMEOUT, 0); /* without memory: try again at once */
}

static void set_open(struct rank_output *out, struct pipe_end *end, bool open)
{
    if (open == end->open)
        return;
    end->open = open;
    if (open)
        TAILQ_INSERT_TAIL(&out->open_lines, end, link);
    else
        TAILQ_REMOVE(&out->open_lines, end, link);
}

static void deliver(struct rank_output *out, struct pipe_end *end, const char *data, size_t length,
                    bool partial)
{
    out->in_flight += length;
    set_open(out, end, partial && end->fd >= 0);
    out->owner.output(out->owner.arg, end->rank, end->stream, data, length, partial);
}

/* What came from its pipe. */
static void deliver_read(struct rank_output *out, struct pipe_end *end, const char *data,
                         size_t length, bool partial)
{
    end->inside = partial;
    deliver(out, end, data, length, partial);
}

static void deliver_held(struct rank_output *out, struct pipe_end *end, bool partial)
{
    if (end->held.len == 0)
        return;
    /* out of the end first: the owner may drop the stream while it has the data */
    CLEANUP(buf_done) struct buf line = end->held;
    end->held = (struct buf)BUF_INIT;
    out->held_ends--;
    deliver_read(out, end, line.data, line.len, partial);
}

static void hold(struct rank_output *out, struct pipe_end *end, const char *data, size_t length)
{
    if (!buf_reserve(&end->held, length)) {
        /* without memory, pieces are better than a loss */
        end->held.failed = false;
        deliver_held(out, end, true);
        deliver_read(out, end, data, length, true);
        return;
    }
    if (end->held.len == 0)
        out->held_ends++;
    buf_add(&end->held, data, length);
}

static void forget_held(struct rank_output *out, struct pipe_end *end)
{
    if (end->held.len > 0)
        out->held_ends--;
    buf_done(&end->held);
}

/* Continues the held line. Returns how many bytes went into it. */
static size_t take_rest_of_line(struct rank_output *out, struct pipe_end *end, const char *data,
                                size_t length)
{
    const char *newline = memchr(data, '\n', length);
    size_t rest = newline ? (size_t)(newline - data) + 1 : length;
    if (end->held.len + rest > RANKS_LINE_MAX) {
        deliver_held(out, end, true);
        return 0;
    }
    hold(out, end, data, rest);
    if (newline)
        deliver_held(out, end, false);
    return rest;
}

static void take(struct rank_output *out, struct pipe_end *end, const char *data, size_t length)
{
    if (end->held.len > 0) {
        size_t taken = take_rest_of_line(out, end, data, length);
        data += taken;
        length -= taken;
    }
    const char *newline = memrchr(data, '\n', length);
    size_t whole = newline ? (size_t)(newline - data) + 1 : 0;
    if (whole > 0)
        deliver_read(out, end, data, whole, false);
    if (length - whole == RANKS_LINE_MAX)
        deliver_read(out, end, data, length, true);
    else if (length > whole)
        hold(out, end, data + whole, length - whole);
}

/* ---- what ranks say beside their pipes ---- */

static struct text *first_text(const struct pipe_end *end)
{
    return STAILQ_FIRST(&end->texts);
}

/* A line of its text is longer than a piece: nothing else of the rank goes between. */
static bool in_text(const struct pipe_end *end)
{
    const struct text *text = first_text(end);
    return text && text->passed > 0 && end->open && !end->inside;
}

static struct text *take_text(struct rank_output *out, struct pipe_end *end)
{
    struct text *text = first_text(end);
    STAILQ_REMOVE_HEAD(&end->texts, link);
    end->text_cost -= text->length + TEXT_COST;
    if (STAILQ_EMPTY(&end->texts))
        TAILQ_REMOVE(&out->speakers, end, speaker);
    return text;
}

static void put_text(struct rank_output *out, struct pipe_end *end, struct text *text)
{
    if (STAILQ_EMPTY(&end->texts))
        TAILQ_INSERT_TAIL(&out->speakers, end, speaker);
    end->text_cost += text->length + TEXT_COST;
    if (text->passed > 0) {
        STAILQ_INSERT_HEAD(&end->texts, text, link);
    } else {
        STAILQ_INSERT_TAIL(&end->texts, text, link);
        end->newest = text->token;
    }
}

static void end_text(struct rank_output *out, struct text *text)
{
    void *token = text->token;
    free(text);
    out->owner.said(out->owner.arg, token);
}

static void drop_texts(struct rank_output *out, struct pipe_end *end)
{
    while (!STAILQ_EMPTY(&end->texts))
        end_text(out, take_text(out, end));
}

/* The rest of the rank's line does not come. Where all texts are of one request, the rank may be
 * waiting for its answer, and would not end its line before. */
static bool line_stays_open(const struct pipe_end *end)
{
    const struct text *text = first_text(end);
    int64_t waited_us = clock_us() - text->said_us;
    return waited_us >= (int64_t)OPEN_LINE_MS * 1000 || is_silent(end, OPEN_LINE_MS) ||
           (text->token == end->newest && waited_us >= (int64_t)RANK_OUTPUT_SILENCE_MS * 1000 &&
            is_silent(end, RANK_OUTPUT_SILENCE_MS));
}

/* The rank's own bytes that came before it are through, and it would not go into one of its lines:
 * unless the rest of that does not come. */
static bool is_due(const struct pipe_end *end)
{
    const struct text *text = first_text(end);
    if (end->fd < 0 || in_text(end))
        return true;
    if (end->read_bytes < text->behind)
        return false;
    return !end->inside || line_stays_open(end);
}

static bool may_say(const struct rank_output *out, const struct pipe_end *end)
{
    bool room = has_room_for_all(out) ||
                (end->open && has_room(out, ROOM_TO_READ) && end == first_open_line(out));
    return room && is_due(end);
}

/* Whole lines, as many as go into a piece, or as much of a line. */
static size_t piece_of(const struct text *text)
{
    size_t left = text->length - text->passed;
    size_t size = left < RANKS_LINE_MAX ? left : RANKS_LINE_MAX;
    const char *newline = memrchr(text->data + text->passed, '\n', size);
    return newline ? (size_t)(newline - text->data) + 1 - text->passed : size;
}

static void say_piece(struct rank_output *out, struct pipe_end *end)
{
    /* out of the end first: the owner may drop the stream while it has the data */
    struct text *text = take_text(out, end);
    size_t size = piece_of(text);
    const char *data = text->data + text->passed;
    text->passed += size;
    end->inside = false;
    end->passed_us = clock_us();
    deliver(out, end, data, size, data[size - 1] != '\n');
    if (text->passed < text->length && !out->dropped[end->stream - 1]) {
        put_text(out, end, text);
        return;
    }
    end_text(out, text);
    if (end->fd < 0)
        out->owner.closed(out->owner.arg);
}

/* A piece of each end, in turn with the pipes, so that neither starves where room is short. */
static void say_texts(struct rank_output *out)
{
    struct epoll_event ready;
    struct pipe_end *end;
    size_t turns = 0;
    TAILQ_FOREACH (end, &out->speakers, speaker)
        turns++;
    bool pipes_first = turns > 0 && out->pipes_turn && has_room_for_all(out) &&
                       epoll_wait(out->epoll, &ready, 1, 0) > 0;
    bool some = false;
    for (; turns > 0 && (end = TAILQ_FIRST(&out->speakers)); turns--) {
        TAILQ_REMOVE(&out->speakers, end, speaker);
        TAILQ_INSERT_TAIL(&out->speakers, end, speaker);
        if ((pipes_first && !in_text(end)) || !may_say(out, end))
            continue;
        some = out->pipes_turn = true;
        say_piece(out, end);
    }
    if (some && !TAILQ_EMPTY(&out->speakers))
        event_active(out->silence, EV_TIMEOUT, 0); /* the next piece, after the pipes */
}

/* One request always fits, and all of it does if its start did. */
static bool fits(const struct pipe_end *end, size_t length, const void *token)
{
    return STAILQ_EMPTY(&end->texts) || end->newest == token ||
           end->text_cost + length + TEXT_COST <= RANKS_TEXT_MAX;
}

int rank_output_say(struct rank_output *out, size_t slot, enum rank_stream stream, const char *data,
                    size_t length, void *token)
{
    struct pipe_end *end = &out->slots[slot]->ends[stream - 1];
    int inside = 0;
    if (!fits(end, length, token))
        return -EDQUOT;
    struct text *text = malloc(sizeof *text);
    if (!text)
        return -ENOMEM;
    if (end->fd >= 0 && ioctl(end->fd, FIONREAD, &inside) < 0)
        inside = 0;
    *text = (struct text){.data = data,
                          .length = length,
                          .behind = end->read_bytes + (uint64_t)inside,
                          .said_us = clock_us(),
                          .token = token};
    if (length == 0 || out->dropped[stream - 1]) {
        end_text(out, text);
        return 0;
    }
    put_text(out, end, text);
    say_texts(out);
    watch(out);
    return 0;
}

/* ---- pipes ---- */

static void close_end(struct rank_output *out, struct pipe_end *end)
{
    if (end->fd < 0)
        return;
    /* by hand: a copy of the descriptor in a child that is just starting would keep it in the set
     */
    epoll_ctl(out->epoll, EPOLL_CTL_DEL, end->fd, NULL);
    if (end == out->line_end)
        watch_line(out, NULL);
    close_fd(&end->fd);
    set_open(out, end, false);
    if (has_room(out, end->held.len))
        deliver_held(out, end, true);
    out->owner.closed(out->owner.arg);
}

static void read_end(struct rank_output *out, struct pipe_end *end)
{
    if (end->fd < 0 || in_text(end)) /* closed by the owner since epoll_wait, or not its turn */
        return;
    size_t size = end->left < RANKS_LINE_MAX ? end->left : RANKS_LINE_MAX;
    ssize_t n = read(end->fd, out->chunk, size);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close_end(out, end);
        return;
    }
    end->passed_us = out->read_us = clock_us();
    end->read_bytes += (uint64_t)n;
    out->pipes_turn = false;
    if (end->tail)
        tail_add(end->tail, out->chunk, (size_t)n);
    take(out, end, out->chunk, (size_t)n);
    if (end->left != UNLIMITED && (end->left -= (size_t)n) == 0)
        close_end(out, end);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct rank_output *out = arg;
    struct epoll_event ready[BATCH];
    (void)what;
    int n = epoll_wait(fd, ready, BATCH, 0);
    for (int i = 0; i < n && has_room_for_all(out); i++)
        read_end(out, ready[i].data.ptr);
    say_texts(out);
    watch(out);
}

static void on_line_ready(evutil_socket_t fd, short what, void *arg)
{
    struct rank_output *out = arg;
    struct pipe_end *end = first_open_line(out);
    (void)fd;
    (void)what;
    if (end && has_room(out, ROOM_TO_READ))
        read_end(out, end);
    say_texts(out);
    watch(out);
}

/* Passes on held lines whose pipe is closed or whose rank is silent. */
static void flush_held(struct rank_output *out)
{
    for (size_t i = 0; i < 2 * out->slot_count && out->held_ends > 0; i++) {
        struct pipe_end *end = &out->slots[i / 2]->ends[i % 2];
        if (end->held.len == 0 || !has_room(out, end->held.len) ||
            (end->fd >= 0 && !is_silent(end, RANK_OUTPUT_SILENCE_MS)))
            continue;
        deliver_held(out, end, true);
        if (end->fd < 0)
            out->owner.closed(out->owner.arg);
    }
}

static void on_silence(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    flush_held(arg);
    say_texts(arg);
    watch(arg);
}

void rank_output_done(struct rank_output *out, size_t bytes)
{
    bool had_room = has_room(out, ROOM_TO_READ);
    out->in_flight -= bytes < out->in_flight ? bytes : out->in_flight;
    /* from the loop, since the owner may be in its output callback */
    if ((!had_room && out->held_ends > 0) || !TAILQ_EMPTY(&out->speakers))
        event_active(out->silence, EV_TIMEOUT, 0);
    watch(out);
}

void rank_output_drop(struct rank_output *out, enum rank_stream stream)
{
    if (stream != RANK_STDOUT && stream != RANK_STDERR) { /* a number that came over the wire */
        log_error("the launcher takes no more of stream %d, which no rank has: ignored",
                  (int)stream);
        return;
    }
    out->dropped[stream - 1] = true;
    for (size_t i = 0; i < out->slot_count; i++) {
        struct pipe_end *end = &out->slots[i]->ends[stream - 1];
        forget_held(out, end);
        drop_texts(out, end);
        close_end(out, end);
    }
}

void rank_output_give_up(struct rank_output *out)
{
    for (size_t i = 0; i < 2 * out->slot_count; i++) {
        struct pipe_end *end = &out->slots[i / 2]->ends[i % 2];
        int inside = 0;
        if (end->fd < 0 || end->left != UNLIMITED)
            continue;
        if (ioctl(end->fd, FIONREAD, &inside) < 0 || inside <= 0)
            close_end(out, end);
        else
            end->left = (size_t)inside;
    }
    watch(out);
}

/* The rank's end blocks, ours does not. */
static int open_end(struct rank_output *out, struct pipe_end *end, uint32_t rank, int *ret_fd)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    *ret_fd = fds[1];
    end->rank = rank;
    if (out->dropped[end->stream - 1]) {
        close(fds[0]);
        return 0;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};
    int rc = fd_set_nonblock(fds[0]);
    if (rc == 0 && epoll_ctl(out->epoll, EPOLL_CTL_ADD, fds[0], &event) < 0)
        rc = -errno;
    if (rc < 0) {
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    end->fd = fds[0];
    return 0;
}

int rank_output_open(struct rank_output *out, size_t slot, uint32_t rank, int ret_fd[2])
{
    struct slot *s = out->slots[slot];
    int fds[2] = {-1, -1};
    int rc = open_end(out, &s->ends[0], rank, &fds[0]);
    if (rc < 0)
        return rc;
    rc = open_end(out, &s->ends[1], rank, &fds[1]);
    if (rc < 0) {
        close(fds[0]);
        rank_output_cancel(out, slot);
        return rc;
    }
    memcpy(ret_fd, fds, sizeof fds);
    return 0;
}

void rank_output_cancel(struct rank_output *out, size_t slot)
{
    for (size_t i = 0; i < 2; i++)
        close_fd(&out->slots[slot]->ends[i].fd); /* the other end is gone: epoll forgets it */
}

static struct slot *slot_new(void)
{
    struct slot *slot = calloc(1, sizeof *slot);
    for (size_t i = 0; slot && i < 2; i++) {
        slot->ends[i] = (struct pipe_end){.fd = -1,
                                          .stream = i ? RANK_STDERR : RANK_STDOUT,
                                          .left = UNLIMITED,
                                          .tail = i ? &slot->tail : NULL};
        STAILQ_INIT(&slot->ends[i].texts);
    }
    return slot;
}

int rank_output_reserve(struct rank_output *out, size_t slots)
{
    struct slot **more = realloc(out->slots, (slots + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    out->slots = more;
    for (; out->slot_count < slots; out->slot_count++)
        if (!(more[out->slot_count] = slot_new()))
            return -ENOMEM;
    return 0;
}

static int set_up(struct rank_output *out, size_t slots, struct event_base *base)
{
    if (rank_output_reserve(out, slots) < 0 || !out->chunk)
        return -ENOMEM;
    out->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (out->epoll < 0)
        return -errno;
    out->ready = event_new(base, out->epoll, EV_READ | EV_PERSIST, on_ready, out);
    out->line_ready = event_new(base, -1, 0, on_line_ready, out);
    out->silence = event_new(base, -1, 0, on_silence, out);
    return out->ready && out->line_ready && out->silence && event_add(out->ready, NULL) == 0
               ? 0
               : -ENOMEM;
}

struct rank_output *rank_output_new(struct event_base *base, size_t slots,
                                    const struct rank_output_owner *owner, struct drarun_error *err)
{
    struct rank_output *out = calloc(1, sizeof *out);
    int rc = -ENOMEM;
    if (out) {
        *out = (struct rank_output){.owner = *owner, .epoll = -1};
        TAILQ_INIT(&out->open_lines);
        TAILQ_INIT(&out->speakers);
        out->chunk = malloc(RANKS_LINE_MAX);
        rc = set_up(out, slots, base);
    }
    if (rc == 0)
        return out;
    rank_output_free(out);
    error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "watch the ranks' output: %s", strerror(-rc));
    return NULL;
}

void rank_output_free(struct rank_output *out)
{
    if (!out)
        return;
    if (out->ready)
        event_free(out->ready);
    if (out->line_ready)
        event_free(out->line_ready);
    if (out->silence)
        event_free(out->silence);
    for (size_t i = 0; out->slots && i < out->slot_count; i++) {
        for (size_t j = 0; j < 2; j++) {
            close_fd(&out->slots[i]->ends[j].fd);
            buf_done(&out->slots[i]->ends[j].held);
            drop_texts(out, &out->slots[i]->ends[j]);
        }
        tail_done(&out->slots[i]->tail);
        free(out->slots[i]);
    }
    close_fd(&out->epoll);
    free(out->slots);
    free(out->chunk);
    free(out);
}
