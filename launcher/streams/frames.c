/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/frames.h"

#include <string.h>

void frames_init(struct frames *frames, const struct frames_owner *owner)
{
    *frames = (struct frames){.owner = *owner, .line = BUF_INIT};
}

void frames_done(struct frames *frames)
{
    buf_done(&frames->line);
}

struct label {
    uint32_t rank;
    bool is_stderr, goes_on;
    size_t length;
};

/* "[12] ", "[12+] ", "[12:err] ", "[12:err+] ". */
static bool read_label(const char *line, size_t length, struct label *ret_label)
{
    static const char err[] = ":err";
    struct label label = {0};
    uint64_t rank = 0;
    size_t at = 1;
    if (length < 4 || line[0] != '[' || line[1] < '0' || line[1] > '9')
        return false;
    for (; at < length && line[at] >= '0' && line[at] <= '9' && rank <= UINT32_MAX; at++)
        rank = rank * 10 + (uint64_t)(line[at] - '0');
    if (length - at > sizeof err - 1 && memcmp(line + at, err, sizeof err - 1) == 0) {
        label.is_stderr = true;
        at += sizeof err - 1;
    }
    if (at < length && line[at] == '+') {
        label.goes_on = true;
        at++;
    }
    if (rank > UINT32_MAX || length - at < 2 || line[at] != ']' || line[at + 1] != ' ')
        return false;
    label.rank = (uint32_t)rank;
    label.length = at + 2;
    *ret_label = label;
    return true;
}

/* "2026-11-21T15:24:42.123456789Z "; 0: none. */
static size_t stamp_length(const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    size_t n = space ? (size_t)(space - line) : 0;
    return n >= 20 && line[4] == '-' && line[10] == 'T' ? n : 0;
}

/* line ends in its newline. */
static void take_line(struct frames *frames, const char *line, size_t length)
{
    const struct frames_owner *owner = &frames->owner;
    struct label label;
    size_t stamp = owner->stamp ? stamp_length(line, length) : 0;
    if (stamp > 0 && !owner->stamp(owner->arg, line, stamp))
        return;
    if (stamp > 0) {
        line += stamp + 1;
        length -= stamp + 1;
    }
    if (!read_label(line, length - 1, &label)) {
        owner->own(owner->arg, line, length - 1);
        return;
    }
    owner->output(owner->arg, label.rank, label.is_stderr, line + label.length,
                  length - label.length - label.goes_on);
}

static void keep(struct frames *frames, const char *data, size_t length)
{
    struct buf *line = &frames->line;
    if (line->len + length > FRAMES_LINE_MAX) { /* nothing of ours */
        frames->owner.own(frames->owner.arg, line->data ? line->data : "", line->len);
        buf_reset(line);
    }
    buf_add(line, data, length);
    if (!line->failed)
        return;
    frames->owner.own(frames->owner.arg, data, length);
    buf_done(line);
    *line = (struct buf)BUF_INIT;
}

void frames_add(struct frames *frames, const char *data, size_t length)
{
    struct buf *line = &frames->line;
    while (length > 0) {
        const char *newline = memchr(data, '\n', length);
        size_t n = newline ? (size_t)(newline - data) + 1 : length;
        if (newline && line->len == 0) {
            take_line(frames, data, n);
        } else {
            keep(frames, data, n);
            if (newline && line->len > 0) {
                take_line(frames, line->data, line->len);
                buf_reset(line);
            }
        }
        data += n;
        length -= n;
    }
}

void frames_end(struct frames *frames)
{
    if (frames->line.len > 0)
        frames_add(frames, "\n", 1);
}
