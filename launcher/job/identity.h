/* SPDX-License-Identifier: Apache-2.0 */
/* What a job is called on its machines. */
#ifndef DRARUN_LAUNCHER_IDENTITY_H
#define DRARUN_LAUNCHER_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

#define IDENTITY_UID_SIZE 17
#define IDENTITY_PATH_SIZE 96

/* 80 random bits in base 32: never used again, and short, since it stands in paths of sockets. */
int identity_make(char uid[IDENTITY_UID_SIZE], struct drarun_error *err);

/* The session directory of a worker: below TMPDIR or another place that can be written and is not
 * full when the worker is on this machine (here), else a name, for which the agent looks for a
 * place. */
void identity_session_dir(const char *uid, uint32_t attempt, uint32_t worker, bool here,
                          char path[IDENTITY_PATH_SIZE]);

#endif
