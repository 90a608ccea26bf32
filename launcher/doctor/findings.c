/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

static const char *const names[] = {"", "ok", "warning", "failed", "unknown"};

void findings_init(struct findings *findings)
{
    *findings = (struct findings){.list = json_array()};
    findings->failed = !findings->list;
}

void findings_done(struct findings *findings)
{
    json_decref(findings->list);
    findings->list = NULL;
}

void findings_add(struct findings *findings, const char *check, enum finding state,
                  const char *change, const char *format, ...)
{
    cleanup_free char *seen = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&seen, format, args) < 0)
        seen = NULL;
    va_end(args);
    json_t *made = json_pack("{s:s, s:s, s:s, s:s*}", "check", check, "state", names[state], "seen",
                             seen ? seen : "", "change", change);
    findings->failed |= !seen || !made || json_array_append_new(findings->list, made) < 0;
    findings->count[state]++;
}

void findings_text(const struct findings *findings, struct buf *out)
{
    size_t i;
    json_t *finding;
    json_array_foreach(findings->list, i, finding)
    {
        const char *change = value_text_or(finding, "change", "");
        buf_printf(out, "%-8s %-20s %s\n", value_text_or(finding, "state", ""),
                   value_text_or(finding, "check", ""), value_text_or(finding, "seen", ""));
        if (*change)
            buf_printf(out, "%-8s %-20s change: %s\n", "", "", change);
    }
    buf_printf(out, "%u ok, %u warnings, %u failed, %u unknown\n", findings->count[FINDING_OK],
               findings->count[FINDING_WARNING], findings->count[FINDING_FAILED],
               findings->count[FINDING_UNKNOWN]);
    out->failed |= findings->failed;
}

json_t *findings_json(const struct findings *findings)
{
    if (findings->failed)
        return NULL;
    return json_pack("{s:O, s:i, s:i, s:i, s:i}", "checks", findings->list, "ok",
                     findings->count[FINDING_OK], "warnings", findings->count[FINDING_WARNING],
                     "failed", findings->count[FINDING_FAILED], "unknown",
                     findings->count[FINDING_UNKNOWN]);
}
