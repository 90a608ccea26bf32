/* SPDX-License-Identifier: Apache-2.0 */
/* The error that every fallible call of drarun fills for its caller. */
#ifndef DRARUN_ERROR_H
#define DRARUN_ERROR_H

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

/* Caller-owned and inline: filling it never allocates and never fails. */
struct drarun_error {
    int code;                 /* an errno value, 0 when there is no error */
    enum drarun_errkind kind; /* decides the exit status */
    char text[512];           /* one line, without a final newline or full stop */
};

#ifdef __cplusplus
}
#endif
#endif
