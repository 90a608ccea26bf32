/* SPDX-License-Identifier: Apache-2.0 */
/* The error that every call fills in for its caller when it fails. */
#ifndef DRARUN_ERROR_H
#define DRARUN_ERROR_H

#include "drarun/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of a failure, which determines the exit status (docs/design/000-names.md). */
enum drarun_errkind {
    DRARUN_ERR_NONE = 0,
    DRARUN_ERR_USAGE,          /* invalid command line: 64 */
    DRARUN_ERR_SPEC,           /* the job or plan was rejected: 65 */
    DRARUN_ERR_CLUSTER,        /* the cluster rejected a request: 69 */
    DRARUN_ERR_INFRASTRUCTURE, /* an agent, node or connection was lost: 70 */
    DRARUN_ERR_CAPACITY,       /* no capacity by the deadline: 75 */
    DRARUN_ERR_PREFLIGHT,      /* a worker's preflight check rejected the job: 76 */
    DRARUN_ERR_INTERRUPTED,    /* the user ended it: 130 */
    DRARUN_ERR_NOT_FOUND,      /* the program does not exist: 127, as in a shell */
    DRARUN_ERR_NOT_EXECUTABLE, /* the program cannot be executed: 126 */
    DRARUN_ERR_TIMEOUT,        /* the job's timeout ended it: 124, as with timeout(1) */
};

/* The caller owns it, inline: filling it never allocates and never fails. Initialize it with {0}. A
 * call that succeeds leaves it untouched. Its size is part of the ABI. */
struct drarun_error {
    int code;                 /* an errno value, 0 when there is no error */
    enum drarun_errkind kind; /* determines the exit status */
    char text[512];           /* one line, without a final newline or full stop */
    char path[128];           /* path of the invalid value, such as "spec.workers", or "" */
    unsigned line, column;    /* position in its document, from 1; 0: unknown */
};

/* Returns the name of a kind as reports have it: "usage", "spec", ... Never NULL. */
DRARUN_API const char *drarun_error_kind_name(enum drarun_errkind kind);

/* Returns the exit status of `drarun` after an error of that kind: 64 to 130. */
DRARUN_API int drarun_exit_status(enum drarun_errkind kind);

#ifdef __cplusplus
}
#endif
#endif
