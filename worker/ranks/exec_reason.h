/* SPDX-License-Identifier: Apache-2.0 */
/* Says why a program cannot be executed, in terms of what its user can change: errno alone hides a
 * missing loader behind "No such file" and a wrong architecture behind "Exec format error". */
#ifndef DRARUN_WORKER_EXEC_REASON_H
#define DRARUN_WORKER_EXEC_REASON_H

#include "drarun/error.h"

/* Fills err for an execve of path (relative to dir) that failed with code; returns -code. */
int exec_reason(int dir, const char *path, int code, struct drarun_error *err);

/* Looks into the file for what execve would refuse; 0 when nothing speaks against it. A file that
 * can be executed but not read passes. */
int exec_reason_check(int dir, const char *path, struct drarun_error *err);

#endif
