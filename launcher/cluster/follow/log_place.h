/* SPDX-License-Identifier: Apache-2.0 */
/* How far a pod's log was read, by the times that the kubelet writes before its lines: a log that
 * broke off is read again from that second on, and goes on behind the last line that was seen. (Not
 * by counting from its beginning, which a rotation takes away.) Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LOG_PLACE_H
#define DRARUN_LAUNCHER_CLUSTER_LOG_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/timestamp.h"

struct log_place {
    int64_t last_ns;  /* of the last line, since 1970; 0: none yet */
    uint32_t count;   /* lines with that time */
    uint32_t skipped; /* of these, while reading again */
    bool again;       /* lines come that may have been seen */
};

/* A line with this time comes; false: it was seen before. What is no time passes. */
bool log_place_pass(struct log_place *place, const char *text, size_t length);
/* The log is opened again: since when, for the API, written to text; NULL: from its beginning. */
const char *log_place_resume(struct log_place *place, char text[TIMESTAMP_SIZE]);

#endif
