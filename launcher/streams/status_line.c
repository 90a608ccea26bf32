/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/status_line.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/plain.h"
#include "lib/base/terminal.h"

#define EVERY_MS 1000

struct status_line {
    status_line_fn fn;
    void *arg;
    int fd; /* the terminal, opened again to be non-blocking: it may be stopped with ^S */
    struct event *timer;
    bool shown;
};

static void put(struct status_line *line, const char *text, size_t length)
{
    /* a line that is lost is shown again a second later */
    ssize_t ignored = write(line->fd, text, length);
    (void)ignored;
}

/* Bytes of the longest beginning of so many columns; a character is one column. */
static size_t columns_fit(const char *text, size_t length, size_t columns)
{
    size_t i = 0;
    for (; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return i;
}

static void add_cut(struct buf *whole, const struct buf *text, size_t room)
{
    bool fits = columns_fit(text->data, text->len, room) == text->len;
    size_t length = columns_fit(text->data, text->len, fits || room < 4 ? room : room - 3);
    buf_add(whole, text->data, length);
    buf_add_str(whole, fits || room < 4 ? "" : "...");
}

static void show(struct status_line *line, struct buf *text)
{
    struct buf whole = BUF_INIT;
    size_t columns = terminal_columns(line->fd);
    size_t room = columns > 1 ? columns - 1 : 79;
    plain_text(text->data, text->len);
    buf_add_str(&whole, "\r");
    add_cut(&whole, text, room);
    buf_add_str(&whole, "\033[K");
    if (!whole.failed)
        put(line, whole.data, whole.len);
    buf_done(&whole);
    line->shown = true;
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    struct status_line *line = arg;
    struct buf text = BUF_INIT;
    (void)fd, (void)what;
    line->fn(line->arg, &text);
    if (text.len > 0 && !text.failed)
        show(line, &text);
    else
        status_line_clear(line);
    buf_done(&text);
}

struct status_line *status_line_new(struct event_base *base, status_line_fn fn, void *arg)
{
    struct timeval every = timeval_from_ms(EVERY_MS);
    const char *term = getenv("TERM");
    if (!isatty(STDERR_FILENO) || (term && strcmp(term, "dumb") == 0))
        return NULL;
    struct status_line *line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    *line = (struct status_line){.fn = fn, .arg = arg};
    line->fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    line->timer = event_new(base, -1, EV_PERSIST, on_time, line);
    if (line->fd < 0 || !line->timer || event_add(line->timer, &every) < 0) {
        status_line_free(line);
        return NULL;
    }
    return line;
}

void status_line_free(struct status_line *line)
{
    if (!line)
        return;
    status_line_clear(line);
    if (line->timer)
        event_free(line->timer);
    close_fd(&line->fd);
    free(line);
}

void status_line_clear(struct status_line *line)
{
    if (!line || !line->shown)
        return;
    put(line, "\r\033[K", 4);
    line->shown = false;
}
