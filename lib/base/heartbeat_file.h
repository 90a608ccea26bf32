/* SPDX-License-Identifier: Apache-2.0 */
/* A file that tells another process of the same machine that a loop runs: a liveness probe without
 * a port, which nobody outside can keep busy (docs/design/035-drajob-objects.md). It holds the time
 * of clock_ms. */
#ifndef DRARUN_BASE_HEARTBEAT_FILE_H
#define DRARUN_BASE_HEARTBEAT_FILE_H

#include <stdint.h>
#include "drarun/error.h"

#define HEARTBEAT_FILE_STALE_MS 30000 /* the loop hangs when it has not written for so long */

/* Makes it where it is missing, and writes the time. Returns its descriptor. */
int heartbeat_file_open(const char *path, struct drarun_error *err);
/* 0, or -errno. */
int heartbeat_file_beat(int fd);

/* 0: it was written less than HEARTBEAT_FILE_STALE_MS before now_ms. Else kind
 * DRARUN_ERR_INFRASTRUCTURE: -ETIME, -EINVAL for another file, or what open(2) says. */
int heartbeat_file_check(const char *path, int64_t now_ms, struct drarun_error *err);

#endif
