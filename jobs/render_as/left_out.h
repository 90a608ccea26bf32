/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of each key of a DraJob in another system's object: one table, which a test holds
 * against the parser's, so that no key is dropped in silence. Pure. */
#ifndef DRARUN_JOBS_RENDER_AS_LEFT_OUT_H
#define DRARUN_JOBS_RENDER_AS_LEFT_OUT_H

#include <jansson.h>
#include "lib/base/strlist.h"

enum left_out_by { LEFT_OUT_RAYCLUSTER = 0, LEFT_OUT_TRAINJOB, LEFT_OUT_RAYJOB, LEFT_OUT_SYSTEMS };

struct left_out {
    const char *path;                  /* "spec.timeouts.queue" */
    const char *why[LEFT_OUT_SYSTEMS]; /* NULL: carried over, or refused or told where it is */
    const char *same; /* the value, as it would be written, with which nothing is lost; or NULL */
};

extern const struct left_out left_out_fields[];
extern const size_t left_out_count;

/* Adds "LEFT_OUT: PATH: WHY" for each field that the document has and the system has not. */
void left_out_tell(const json_t *document, enum left_out_by system, struct strlist *told);

#endif
