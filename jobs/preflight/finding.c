/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/preflight/preflight_private.h"

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
    if (run->count == run->cap) {
        size_t cap = run->cap ? 2 * run->cap : 16;
        struct preflight_finding *grown = reallocarray(run->list, cap, sizeof *grown);
        run->list = grown ? grown : run->list;
        run->cap = grown ? cap : run->cap;
    }
    if (!finding.text || !finding.cure || run->count == run->cap) {
        preflight_finding_done(&finding);
        run->failed = true;
        return;
    }
    run->list[run->count++] = finding;
}
