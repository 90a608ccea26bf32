/* SPDX-License-Identifier: Apache-2.0 */
/* Our own lines as JSON, one object a line, for the log of a pod. */
#ifndef DRARUN_LAUNCHER_JSON_LOG_H
#define DRARUN_LAUNCHER_JSON_LOG_H

#include <stddef.h>
#include "lib/base/buf.h"

/* line: as log_divert gives it, "drarun: text\n". Appends {"time", "text"} and a newline. */
void json_log_line(const char *line, size_t length, struct buf *out);

#endif
