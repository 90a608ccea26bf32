/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people, on stderr: "drarun: text". Level and destination are the only mutable state of
 * the library; the level is set once at start. Any thread may log; a line is one write. */
#ifndef DRARUN_BASE_LOG_H
#define DRARUN_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

enum log_level {
    LOG_QUIET = 0, /* errors only */
    LOG_NORMAL,    /* and what a user must know */
    LOG_VERBOSE,   /* and a line per transition */
    LOG_DEBUG,
};

/* What a line is about, for those who sort them; texts are borrowed for the call. */
struct log_about {
    bool of_worker, of_rank;
    uint32_t worker, rank;
    const char *claim, *node; /* NULL: none */
};

struct log_line {
    enum log_level level;
    struct log_about about;
    /* "drarun: text\n", behind the prefix as plain_text() makes it: no controls. Further lines of
     * the text are indented: none begins as one of ours. */
    const char *text;
    size_t length;
    size_t prefix; /* of it "drarun: ", which may be coloured (log_colour) */
};

/* name: the program, shown before each line; borrowed for the life of the process. */
void log_setup(const char *name, enum log_level level);
enum log_level log_level_now(void);
/* on: the program's name before an error is red, for a terminal. */
void log_colour(bool on);
/* Lines go to put instead of stderr, as into a queue of the loop, which must not block; NULL: back.
 * Set while one thread runs; put runs on the thread that logs. */
void log_divert(void (*put)(void *arg, const struct log_line *line), void *arg);

/* Of this thread alone and before log_divert, for a library in somebody's program. */
struct log_scope {
    enum log_level level;
    void (*put)(void *arg, const struct log_line *line); /* NULL: lines go nowhere */
    void *arg;
};
/* next: borrowed until another is set; NULL: none. Returns what was set before. */
const struct log_scope *log_scope_set(const struct log_scope *next);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with what it is about, which may be NULL. */
void log_about(const struct log_about *about, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
