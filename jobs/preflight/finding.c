/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/preflight_private.h"
#include "lib/base/array.h"

const char *preflight_name(enum preflight_code code)
{
    static const char *const names[] = {
#define PREFLIGHT_NAME(name) [PREFLIGHT_##name] = #name,
        PREFLIGHT_CODES(PREFLIGHT_NAME)
#undef PREFLIGHT_NAME
    };
    return code < ARRAY_LEN(names) && names[code] ? names[code] : "NONE";
}

void preflight_finding_done(struct preflight_finding *finding)
{
    free(finding->where);
    free(finding->text);
    free(finding->cure);
}

void preflight_add(struct preflight_run *run, enum preflight_code code, bool refusal,
                   uint32_t worker, const char *cure, const char *format, ...)
{
    struct preflight_finding finding = {.code = code,
                                        .refusal = refusal || run->in->spec->on_preflight_warning ==
                                                                  SPEC_FALLBACK_FAIL,
                                        .worker = worker};
    va_list args;
    va_start(args, format);
    int n = vasprintf(&finding.text, format, args);
    va_end(args);
    if (n < 0)
        finding.text = NULL;
    finding.cure = strdup(cure);
    struct preflight_finding *grown = array_room(run->list, run->count, &run->cap, sizeof *grown);
    if (grown)
        run->list = grown;
    if (!finding.text || !finding.cure || !grown) {
        preflight_finding_done(&finding);
        run->failed = true;
        return;
    }
    run->list[run->count++] = finding;
}
