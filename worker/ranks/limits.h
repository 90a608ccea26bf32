/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of this process that starting ranks runs into, and the words to say so. */
#ifndef DRARUN_WORKER_LIMITS_H
#define DRARUN_WORKER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include "drarun/error.h"
#include "worker/host/room.h"

/* Raises the soft limit of open files to what so many ranks need, with some to spare, as far as the
 * hard one allows. True when it was changed: ret_before is then what ranks must get back, since
 * programs that use select() rely on a small one. */
bool limits_raise_files(const struct room_files *files, size_t ranks, struct rlimit *ret_before);

/* Errors of kind DRARUN_ERR_INFRASTRUCTURE with the limit's value and the cure. */
int limits_file_error(int code, const struct room_files *files, size_t ranks,
                      struct drarun_error *err);
int limits_process_error(int code, struct drarun_error *err);

#endif
