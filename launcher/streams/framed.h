/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher's log in its pod (docs/design/015-cluster.md): what each of its own lines says, and
 * how many there are, of ranks and of its own. A node keeps the last megabytes of a log alone, so
 * that a line from time to time tells how many came before it. Loop thread only. */
#ifndef DRARUN_LAUNCHER_FRAMED_H
#define DRARUN_LAUNCHER_FRAMED_H

#include "lib/doc/log_json.h"

#define FRAMED_MARK_LINES 5000
#define FRAMED_MARK_EVENT "log"

struct framed {
    struct log_json who;
    uint64_t lines; /* written */
    uint64_t marked;
};

/* These bytes were written. */
void framed_count(struct framed *framed, const char *data, size_t length);
/* Appends {"event": "log", "lines": ..} where it is time for it: before the first line, and after
 * so many; it is to be written next, and counted. */
void framed_mark(struct framed *framed, struct buf *out);

#endif
