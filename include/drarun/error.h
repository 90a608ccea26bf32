/* SPDX-License-Identifier: Apache-2.0 */
/* The error that every fallible call of drarun fills for its caller. */
#ifndef DRARUN_ERROR_H
#define DRARUN_ERROR_H

#include "drarun/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kind of failure it was; it decides the exit status (docs/design/000-names.md). */
enum drarun_errkind {
    DRARUN_ERR_NONE = 0,
    DRARUN_ERR_USAGE,          /* a wrong command line: 64 */
    DRARUN_ERR_SPEC,           /* the job or plan was refused: 65 */
    DRARUN_ERR_CLUSTER,        /* the cluster refused a request: 69 */
    DRARUN_ERR_INFRASTRUCTURE, /* an agent, node or connection was lost: 70 */
    DRARUN_ERR_CAPACITY,       /* no capacity by the deadline: 75 */
    DRARUN_ERR_PREFLIGHT,      /* a worker's check refused the job: 76 */
    DRARUN_ERR_INTERRUPTED,    /* the user ended it: 130 */
    DRARUN_ERR_NOT_FOUND,      /* the program does not exist: 127, as a shell says */
    DRARUN_ERR_NOT_EXECUTABLE, /* the program cannot be executed: 126 */
    DRARUN_ERR_TIMEOUT,        /* --timeout ended the job: 124, as timeout(1) says */
};

/* Caller-owned and inline: filling it never allocates and never fails. Start it with {0}; a call
 * that succeeds leaves it alone. The size is part of the ABI. */
struct drarun_error {
    int code;                 /* an errno value, 0 when there is no error */
    enum drarun_errkind kind; /* decides the exit status */
    char text[512];           /* one line, without a final newline or full stop */
    char path[128];           /* of the value that is wrong: "spec.workers"; "": of none */
    unsigned line, column;    /* of its document, from 1; 0: not known */
};

/* The word that reports use for a kind: "usage", "spec", ... Never NULL. */
DRARUN_API const char *drarun_error_kind_name(enum drarun_errkind kind);

/* What `drarun` ends with after an error of that kind: 64 to 130. */
DRARUN_API int drarun_exit_status(enum drarun_errkind kind);

#ifdef __cplusplus
}
#endif
#endif
