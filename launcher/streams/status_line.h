/* SPDX-License-Identifier: Apache-2.0 */
/* One line on a terminal that says what is awaited, for as long as it is. Loop thread only. */
#ifndef DRARUN_LAUNCHER_STATUS_LINE_H
#define DRARUN_LAUNCHER_STATUS_LINE_H

#include <stdbool.h>
#include <event2/event.h>
#include "lib/base/buf.h"

/* Appends what is awaited; nothing when nothing needs to be said now. Asked once a second. */
typedef void (*status_line_fn)(void *arg, struct buf *text);

struct status_line;

/* NULL, which the others accept, when stderr is no terminal (or a dumb one). */
struct status_line *status_line_new(struct event_base *base, status_line_fn fn, void *arg);
void status_line_free(struct status_line *line);
/* Takes the line away: before anything else is written to the terminal. */
void status_line_clear(struct status_line *line);

#endif
