/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/console.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/streams/status_line.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct console {
    struct console_options options;
    struct console_owner owner;
    struct framed own;     /* of `frames` without `framed` */
    struct framed *framed; /* that, or the options'; NULL: lines are as they are */
    bool has_log;
    struct output *output;    /* NULL: it is not open */
    struct status_line *line; /* NULL: none */
    struct event *reader;     /* of the frames; NULL: it does not matter whether somebody reads */
};

/* ---- what comes of the streams ---- */

static void on_credit(void *arg, uint32_t agent, size_t bytes)
{
    const struct console *console = arg;
    console->owner.credit(console->owner.arg, agent, bytes);
}

/* That the reader of frames has gone ends the job, and the ranks are to have their time. */
static void on_closed(void *arg, enum output_stream stream)
{
    const struct console *console = arg;
    if (!console->reader)
        console->owner.closed(console->owner.arg, stream);
    else if (event_pending(console->reader, EV_READ, NULL))
        event_active(console->reader, EV_READ, 0);
}

static void on_failed(void *arg, const struct drarun_error *err)
{
    const struct console *console = arg;
    console->owner.failed(console->owner.arg, err);
}

static void on_idle(void *arg)
{
    const struct console *console = arg;
    console->owner.idle(console->owner.arg);
}

static void on_before(void *arg)
{
    console_clear(arg);
}

static void on_written(void *arg, const char *data, size_t length)
{
    framed_count(((struct console *)arg)->framed, data, length);
}

static void on_log(void *arg, const struct log_line *line)
{
    const struct console *console = arg;
    struct buf json = BUF_INIT;
    if (console->framed)
        log_json_line(&console->framed->who, line, &json);
    bool framed = json.len > 0 && !json.failed;
    output_say(console->output, framed ? json.data : line->text, framed ? json.len : line->length);
    buf_done(&json);
}

static void on_reader_gone(evutil_socket_t fd, short what, void *arg)
{
    struct console *console = arg;
    (void)fd, (void)what;
    event_del(console->reader);
    log_verbose("the reader of our frames is gone");
    console->owner.reader_gone(console->owner.arg);
}

static void on_awaited(void *arg, struct buf *text)
{
    const struct console *console = arg;
    console->owner.awaited(console->owner.arg, text);
}

/* ---- begin and end ---- */

struct console *console_new(const struct console_options *options)
{
    struct console *console = calloc(1, sizeof *console);
    if (!console)
        return NULL;
    console->options = *options;
    console->framed = options->framed ? options->framed : options->frames ? &console->own : NULL;
    return console;
}

/* Of a pipe's end that is written to, epoll says so when its reader has gone. A file has none, and
 * epoll refuses it. */
static void watch_reader(struct console *console, struct event_base *base)
{
    struct stat st;
    if (!console->options.frames || fstat(STDOUT_FILENO, &st) < 0 ||
        !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        return;
    console->reader = event_new(base, STDOUT_FILENO, EV_READ | EV_PERSIST, on_reader_gone, console);
    if (console->reader && event_add(console->reader, NULL) < 0)
        event_free(TAKE_PTR(console->reader));
}

int console_open(struct console *console, struct event_base *base, uint32_t ranks,
                 const struct console_owner *owner, struct drarun_error *err)
{
    const struct output_owner of_output = {
        .credit = on_credit,
        .closed = on_closed,
        .failed = on_failed,
        .before = on_before,
        .written = console->framed ? on_written : NULL,
        .idle = on_idle,
        .arg = console,
    };
    const struct output_options options = {
        .form = console->framed          ? OUTPUT_FRAMED
                : console->options.label ? OUTPUT_LABELLED
                                         : OUTPUT_PLAIN,
        .dir = console->options.dir,
        .reader = console->options.reader,
    };
    console->owner = *owner;
    console->output = output_new(base, ranks, &options, &of_output, err);
    if (!console->output)
        return -err->code;
    log_divert(on_log, console);
    console->has_log = true;
    watch_reader(console, base);
    if (!console->options.quiet)
        console->line = status_line_new(base, on_awaited, console);
    return 0;
}

void console_release_log(struct console *console)
{
    if (console->has_log)
        log_divert(NULL, NULL);
    console->has_log = false;
}

void console_close(struct console *console)
{
    console_release_log(console);
    status_line_free(TAKE_PTR(console->line));
    if (console->reader)
        event_free(TAKE_PTR(console->reader));
    if (console->output)
        output_free(TAKE_PTR(console->output));
}

void console_free(struct console *console)
{
    if (!console)
        return;
    console_close(console);
    free(console);
}

/* ---- while it is open ---- */

struct output *console_output(struct console *console)
{
    return console->output;
}

void console_mark(struct console *console)
{
    struct buf mark = BUF_INIT;
    if (console->framed)
        framed_mark(console->framed, &mark);
    if (mark.len > 0 && !mark.failed)
        output_say(console->output, mark.data, mark.len);
    buf_done(&mark);
}

void console_clear(struct console *console)
{
    status_line_clear(console->line);
}
