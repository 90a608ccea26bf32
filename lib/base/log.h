/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people, on stderr: "drarun: text". Level and destination are the only mutable state of
 * the library; the level is set once at start. Any thread may log; a line is one write. */
#ifndef DRARUN_BASE_LOG_H
#define DRARUN_BASE_LOG_H

#include <stddef.h>
#include "drarun/error.h"

enum log_level {
    LOG_QUIET = 0, /* errors only */
    LOG_NORMAL,    /* and what a user must know */
    LOG_VERBOSE,   /* and a line per transition */
    LOG_DEBUG,
};

/* name: the program, shown before each line; borrowed for the life of the process. */
void log_setup(const char *name, enum log_level level);
enum log_level log_level_now(void);
/* Lines go to put instead of stderr, as into a queue of the loop, which must not block; NULL: back.
 * Set while one thread runs. */
void log_divert(void (*put)(void *arg, const char *line, size_t length), void *arg);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
