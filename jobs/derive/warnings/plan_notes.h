/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a plan have beside their results: warnings, the refusal that ends the plan, and
 * the texts that their results point to. Pure. */
#ifndef DRARUN_JOBS_PLAN_NOTES_H
#define DRARUN_JOBS_PLAN_NOTES_H

#include <stdbool.h>
#include "jobs/derive/warnings/warnings.h"
#include "lib/base/strlist.h"

struct plan_notes {
    struct warnings warnings;
    struct warning refusal; /* code 0: none */
    struct strlist pool;    /* of plan_notes_text */
};

/* A text that lives as long as the notes; "" when out of memory (pool.failed). */
const char *plan_notes_text(struct plan_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the plan with this refusal; returns 1, which stops the steps without being an error. */
int plan_notes_refuse(struct plan_notes *notes, enum warning_code code, int32_t worker,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Something could not be kept: out of memory. */
bool plan_notes_failed(const struct plan_notes *notes);
void plan_notes_done(struct plan_notes *notes);

#endif
