/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/log_tail.h"

#include <errno.h>
#include <stdlib.h>

int log_tail_init(struct log_tail *tail, size_t limit)
{
    *tail = (struct log_tail){.limit = limit};
    tail->lines = calloc(limit + 1, sizeof *tail->lines); /* + 1: none is no failure */
    return tail->lines ? 0 : -ENOMEM;
}

void log_tail_done(struct log_tail *tail)
{
    for (size_t i = 0; tail->lines && i < tail->limit; i++)
        buf_done(&tail->lines[i].text);
    free(tail->lines);
    *tail = (struct log_tail){0};
}

bool log_tail_add(struct log_tail *tail, int stream, const char *data, size_t length)
{
    if (tail->limit == 0)
        return true;
    struct log_tail_line *line = &tail->lines[(tail->first + tail->count) % tail->limit];
    if (tail->count == tail->limit) {
        tail->first = (tail->first + 1) % tail->limit;
        buf_done(&line->text);
    } else {
        tail->count++;
    }
    line->stream = stream;
    line->text = (struct buf)BUF_INIT;
    buf_add(&line->text, data, length);
    return !line->text.failed;
}

void log_tail_take(struct log_tail *tail,
                   void (*put)(void *arg, int stream, const char *data, size_t length), void *arg)
{
    for (size_t i = 0; i < tail->count; i++) {
        struct log_tail_line *line = &tail->lines[(tail->first + i) % tail->limit];
        put(arg, line->stream, line->text.data, line->text.len);
        buf_done(&line->text);
        line->text = (struct buf)BUF_INIT;
    }
    tail->count = tail->first = 0;
}
