/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

static const struct {
    const char *name;
    int status;
} kinds[] = {
    [DRARUN_ERR_NONE] = {"none", 70},
    [DRARUN_ERR_USAGE] = {"usage", 64},
    [DRARUN_ERR_SPEC] = {"spec", 65},
    [DRARUN_ERR_CLUSTER] = {"cluster", 69},
    [DRARUN_ERR_INFRASTRUCTURE] = {"infrastructure", 70},
    [DRARUN_ERR_CAPACITY] = {"capacity", 75},
    [DRARUN_ERR_PREFLIGHT] = {"preflight", 76},
    [DRARUN_ERR_INTERRUPTED] = {"interrupted", 130},
    [DRARUN_ERR_NOT_FOUND] = {"not-found", 127},
    [DRARUN_ERR_NOT_EXECUTABLE] = {"not-executable", 126},
    [DRARUN_ERR_TIMEOUT] = {"timeout", 124},
};

static int fill(struct drarun_error *err, int code, const char *format, va_list args)
{
    if (code < 0)
        code = -code;
    if (code == 0)
        code = EINVAL; /* an error without a code would read as success */
    if (err) {
        err->code = code;
        vsnprintf(err->text, sizeof err->text, format, args);
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
