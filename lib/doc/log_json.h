/* SPDX-License-Identifier: Apache-2.0 */
/* Our own lines as JSON, one object a line, for the log of a pod:
 *   {"time", "level", "job", "attempt", "worker", "rank", "claim", "node", "text"}
 * with those that are known. Pure but for the clock; any thread. */
#ifndef DRARUN_DOC_LOG_JSON_H
#define DRARUN_DOC_LOG_JSON_H

#include "lib/base/buf.h"
#include "lib/base/log.h"

/* Of the process; borrowed. */
struct log_json {
    const char *job;        /* NULL: not known, as everything here */
    int64_t attempt;        /* from 1; 0 */
    struct log_about about; /* what every line is about that says nothing else */
};

/* Appends the object and a newline; nothing without memory. */
void log_json_line(const struct log_json *who, const struct log_line *line, struct buf *out);
/* The same to stderr, in one write; without memory the line as it is. */
void log_json_write(const struct log_json *who, const struct log_line *line);

#endif
