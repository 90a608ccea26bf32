/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/warnings/plan_notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *plan_notes_text(struct plan_notes *notes, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        notes->pool.failed = true;
        return "";
    }
    strlist_add(&notes->pool, text);
    free(text);
    return notes->pool.failed ? "" : notes->pool.items[notes->pool.count - 1];
}

int plan_notes_refuse(struct plan_notes *notes, enum warning_code code, int32_t worker,
                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *detail = NULL;
    if (vasprintf(&detail, format, args) < 0)
        detail = NULL;
    va_end(args);
    free(notes->refusal.detail);
    notes->refusal = (struct warning){code, worker, detail};
    return 1;
}

bool plan_notes_failed(const struct plan_notes *notes)
{
    return notes->pool.failed || notes->warnings.failed ||
           (notes->refusal.code && !notes->refusal.detail);
}

void plan_notes_done(struct plan_notes *notes)
{
    warnings_done(&notes->warnings);
    free(notes->refusal.detail);
    strlist_done(&notes->pool);
    *notes = (struct plan_notes){0};
}
