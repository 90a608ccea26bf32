/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of an allocation, and who holds it: `drarun alloc` as long as it lives, and one job
 * after the other. Both are locks, which end with the process that has them. */
#ifndef DRARUN_LAUNCHER_ALLOC_FOLDER_H
#define DRARUN_LAUNCHER_ALLOC_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"

/* Makes it, as dir_make_temporary, after removing those beside it that killed allocations of this
 * user left, with their keys. *ret_owner is this process's hold on it, a descriptor; -1 where the
 * file system has no locks: then nothing is ever taken for left. */
int folder_make(char *ret_path, size_t size, int *ret_owner, struct drarun_error *err);
/* The process that made it is gone and did not remove it. */
bool folder_is_left(const char *path);

/* *ret_job: a descriptor, the right to run a job there until it is closed; -1 where the file system
 * has no locks. -EBUSY, kind DRARUN_ERR_CAPACITY: another job runs. others: what else the user may
 * do. */
int folder_enter(const char *path, const char *others, int *ret_job, struct drarun_error *err);

#endif
