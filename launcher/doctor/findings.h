/* SPDX-License-Identifier: Apache-2.0 */
/* What checks have found, in their order, and how it is shown. */
#ifndef DRARUN_LAUNCHER_DOCTOR_FINDINGS_H
#define DRARUN_LAUNCHER_DOCTOR_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>
#include "lib/base/buf.h"

enum finding { FINDING_OK = 1, FINDING_WARNING, FINDING_FAILED, FINDING_UNKNOWN };

struct findings {
    json_t *list; /* of {check, state, seen, change} */
    unsigned count[FINDING_UNKNOWN + 1];
    bool failed; /* memory ran out: the list is incomplete */
};

void findings_init(struct findings *findings);
void findings_done(struct findings *findings);

/* change: what to do about it; NULL: nothing. format: what was seen. */
void findings_add(struct findings *findings, const char *check, enum finding state,
                  const char *change, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A line each, and what to change below those that need it; a last line counts. */
void findings_text(const struct findings *findings, struct buf *out);
/* {"checks": [...], "ok": n, "warnings": n, "failed": n, "unknown": n}; a new reference, NULL
 * without memory. */
json_t *findings_json(const struct findings *findings);

#endif
