/* SPDX-License-Identifier: Apache-2.0 */
/* The session directory: what a job's agent keeps on disk while the job runs. */
#ifndef DRARUN_WORKER_SESSION_H
#define DRARUN_WORKER_SESSION_H

#include "drarun/error.h"

/* Makes the directory with mode 0700; it must not exist; its parent is not created. */
int session_make(const char *path, struct drarun_error *err);
/* Removes it with all below. Missing is success. */
int session_remove(const char *path);

#endif
