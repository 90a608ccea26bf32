/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the file that execve is to be given for a rank's argv[0]. */
#ifndef DRARUN_WORKER_EXEC_PATH_H
#define DRARUN_WORKER_EXEC_PATH_H

#include <limits.h>
#include <stdbool.h>
#include "drarun/error.h"

/* The directory that a rank starts in, for relative paths: a new descriptor, or AT_FDCWD when wd is
 * NULL or empty. */
int exec_path_open_wd(const char *wd, int *ret_dir, struct drarun_error *err);

/* Looks program up as execvpe does: in the PATH of env, unless it holds a slash; and, if here is
 * set, after all of these in dir. ret_path is relative to dir where PATH or program is, so it is
 * right for a process that has changed to dir. Kinds: DRARUN_ERR_NOT_FOUND,
 * DRARUN_ERR_NOT_EXECUTABLE. */
int exec_path_find(int dir, const char *program, char *const *env, bool here,
                   char ret_path[PATH_MAX], struct drarun_error *err);

#endif
