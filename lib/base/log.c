/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/plain.h"

static struct {
    const char *name;
    enum log_level level;
    bool colour;
    void (*put)(void *arg, const struct log_line *line); /* NULL: stderr */
    void *arg;
} setup = {"drarun", LOG_NORMAL, false, NULL, NULL};

static _Thread_local const struct log_scope *scope;

const struct log_scope *log_scope_set(const struct log_scope *next)
{
    const struct log_scope *before = scope;
    scope = next;
    return before;
}

void log_setup(const char *name, enum log_level level)
{
    setup.name = name;
    setup.level = level;
}

void log_colour(bool on)
{
    setup.colour = on;
}

void log_divert(void (*put)(void *arg, const struct log_line *line), void *arg)
{
    setup.put = put;
    setup.arg = arg;
}

enum log_level log_level_now(void)
{
    return scope ? scope->level : setup.level;
}

static void put(const struct log_about *about, enum log_level level, const char *format,
                va_list args)
{
    if (log_level_now() < level || (scope && !scope->put))
        return;
    char line[1024];
    bool red = setup.colour && level == LOG_QUIET && !scope;
    int used = snprintf(line, sizeof line, red ? "\033[1;31m%s:\033[0m " : "%s: ", setup.name);
    int n = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    if (n < 0)
        return;
    size_t room = sizeof line - (size_t)used - 2;
    size_t length = plain_indent(line + used, strlen(line + used), room),
           len = (size_t)used + length;
    plain_text(line + used, length);
    line[len++] = '\n';
    if (scope || setup.put) {
        const struct log_line whole = {.level = level,
                                       .about = about ? *about : (struct log_about){0},
                                       .text = line,
                                       .length = len,
                                       .prefix = (size_t)used};
        if (scope)
            scope->put(scope->arg, &whole);
        else
            setup.put(setup.arg, &whole);
        return;
    }
    /* nothing sensible is left to do when stderr itself fails */
    ssize_t ignored = write(STDERR_FILENO, line, len);
    (void)ignored;
}

void log_about(const struct log_about *about, enum log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(about, level, format, args);
    va_end(args);
}

#define DEFINE_LOG(function, level)                                                                \
    void function(const char *format, ...)                                                         \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        put(NULL, level, format, args);                                                            \
        va_end(args);                                                                              \
    }

DEFINE_LOG(log_error, LOG_QUIET)
DEFINE_LOG(log_note, LOG_NORMAL)
DEFINE_LOG(log_verbose, LOG_VERBOSE)
DEFINE_LOG(log_debug, LOG_DEBUG)
