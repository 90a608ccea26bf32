/* SPDX-License-Identifier: Apache-2.0 */
/* Where a job is shown that is run from here: the ranks' output and our own lines on standard
 * output and standard error, or framed, and on a terminal a line that says what is awaited. The
 * verb says how, and makes it; the job engine opens it and knows nothing of what is behind it. One
 * is open per process. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CONSOLE_H
#define DRARUN_LAUNCHER_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "launcher/streams/framed.h"
#include "launcher/streams/output.h"
#include "launcher/streams/sink.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

struct console_options { /* borrowed */
    bool label;          /* each line has its rank */
    bool frames;         /* everything is for a program: as `framed`, and reader_gone is called */
    /* Everything is a pod's log, whose lines this counts; NULL: lines are as they are. */
    struct framed *framed;
    const char *dir;                  /* for the ranks' output, in files; NULL: it is shown */
    const struct sink_reader *reader; /* of the ranks' standard output, as in output_options */
    bool quiet;                       /* no line of what is awaited */
};

struct console_owner {
    /* As in struct output_owner, but that frames have no reader is told by reader_gone alone. */
    void (*credit)(void *arg, uint32_t agent, size_t bytes);
    void (*closed)(void *arg, enum output_stream stream);
    void (*failed)(void *arg, const struct drarun_error *err);
    void (*idle)(void *arg);
    /* Nobody reads the frames any more. */
    void (*reader_gone)(void *arg);
    /* Appends what is awaited, as of status_line_fn. */
    void (*awaited)(void *arg, struct buf *text);
    void *arg;
};

struct console;

/* Opens nothing yet. NULL without memory. */
struct console *console_new(const struct console_options *options);
/* NULL is fine. */
void console_free(struct console *console);
DEFINE_CLEANUP(struct console, console_free)

/* Once. From now on our own lines go the way of the output, too. */
int console_open(struct console *console, struct event_base *base, uint32_t ranks,
                 const struct console_owner *owner, struct drarun_error *err);
/* Our own lines go to standard error again, however slow its reader. */
void console_release_log(struct console *console);
/* All of it; drops what is queued. Fine where it is not open. */
void console_close(struct console *console);

/* What the ranks write goes there; borrowed, NULL where it is not open. */
struct output *console_output(struct console *console);
/* After output: a pod's log says from time to time how long it is. */
void console_mark(struct console *console);
/* Takes away what a terminal shows of waiting, before a line of the log. */
void console_clear(struct console *console);

#endif
