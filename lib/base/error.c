/* SPDX-License-Identifier: Apache-2.0 */
#define DRARUN_BASE_ERROR_C
#include "lib/base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/plain.h"

/* docs/messages.md and `drarun help STATUS` have all of it. */
static const struct {
    const char *name;
    int status;
    const char *meaning, *cure;
} kinds[] = {
    [DRARUN_ERR_NONE] = {"none", 70, NULL, NULL},
    [DRARUN_ERR_USAGE] = {"usage", 64, "the command line is wrong",
                          "drarun help VERB shows the options"},
    [DRARUN_ERR_SPEC] = {"spec", 65,
                         "the job's description is wrong, or names an image or a device class "
                         "that does not exist",
                         "drarun validate FILE names each wrong key"},
    [DRARUN_ERR_CLUSTER] = {"cluster", 69,
                            "the API server cannot be reached, or refuses the request",
                            "drarun doctor shows what the cluster and your rights lack"},
    [DRARUN_ERR_INFRASTRUCTURE] = {"infrastructure", 70,
                                   "an agent, a node or a connection was lost, or the output could "
                                   "not be read to its end",
                                   "the report names the worker and its node; restarts: N in the "
                                   "spec runs the job again"},
    [DRARUN_ERR_CAPACITY] = {"capacity", 75,
                             "there was no room in time, or another job runs in the allocation",
                             "drarun plan FILE shows what is short; raise timeouts.queue, nodes or "
                             "allocation, or ask for fewer workers; in an allocation, wait for the "
                             "other job"},
    [DRARUN_ERR_PREFLIGHT] = {"preflight", 76,
                              "a check of the workers refused the job, or a worker has no room for "
                              "its ranks",
                              "the message names the worker, what it lacks and the cure"},
    [DRARUN_ERR_INTERRUPTED] = {"interrupted", 130, "the user ended it", "nothing is wrong"},
    [DRARUN_ERR_NOT_FOUND] = {"not-found", 127, "the program does not exist",
                              "look at its path, at PATH and at the image"},
    [DRARUN_ERR_NOT_EXECUTABLE] = {"not-executable", 126, "the program cannot be executed",
                                   "look at its permissions, its first line and its architecture"},
    [DRARUN_ERR_TIMEOUT] = {"timeout", 124, "the job's time was over",
                            "allow more time: --timeout, or timeouts.total in the spec"},
};

/* The words of others are in it, and a report of it is JSON. */
static void make_plain(char *text, bool is_cut)
{
    if (is_cut)
        utf8_trim(text);
    plain_text(text, strlen(text));
}

static int fill(struct drarun_error *err, int code, const char *format, va_list args)
{
    if (code < 0)
        code = -code;
    if (code == 0)
        code = EINVAL; /* an error without a code would read as success */
    if (err) {
        err->code = code;
        int length = vsnprintf(err->text, sizeof err->text, format, args);
        make_plain(err->text, length >= (int)sizeof err->text);
    }
    return -code;
}

int error_set(struct drarun_error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = fill(err, code, format, args);
    va_end(args);
    return rc;
}

int error_kind(struct drarun_error *err, enum drarun_errkind kind, int code, const char *format,
               ...)
{
    va_list args;
    va_start(args, format);
    int rc = fill(err, code, format, args);
    va_end(args);
    if (err)
        err->kind = kind;
    return rc;
}

int error_prefix(struct drarun_error *err, const char *format, ...)
{
    if (!err)
        return -EINVAL;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof text - 3)
        return -err->code;
    size_t room = sizeof text - (size_t)used - 3; /* after ": " and with the NUL */
    memcpy(text + used, ": ", 2);
    memcpy(text + used + 2, err->text, room);
    text[sizeof text - 1] = '\0';
    make_plain(text, strlen(err->text) > room);
    memcpy(err->text, text, sizeof text);
    return -err->code;
}

int error_exit_status(enum drarun_errkind kind)
{
    return (size_t)kind < ARRAY_LEN(kinds) ? kinds[kind].status : 70;
}

const char *error_kind_name(enum drarun_errkind kind)
{
    return (size_t)kind < ARRAY_LEN(kinds) ? kinds[kind].name : "unknown";
}

const char *error_kind_meaning(enum drarun_errkind kind)
{
    return (size_t)kind < ARRAY_LEN(kinds) ? kinds[kind].meaning : NULL;
}

const char *error_kind_cure(enum drarun_errkind kind)
{
    return (size_t)kind < ARRAY_LEN(kinds) ? kinds[kind].cure : NULL;
}
