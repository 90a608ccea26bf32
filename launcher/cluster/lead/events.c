/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/client/api_event.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"

static json_t *about(const struct lead *lead)
{
    bool here = lead->options->here;
    return json_pack("{s:s, s:s, s:o, s:s, s:s}", "apiVersion", here ? "v1" : "batch/v1", "kind",
                     here ? "ConfigMap" : "Job", "name",
                     json_sprintf("%s%s", lead->spec->name, here ? "-status" : ""), "namespace",
                     lead->options->namespace, "uid", lead->owner_uid);
}

void lead_event(struct lead *lead, enum reason reason, const char *message)
{
    CLEANUP(json_decrefp) json_t *owner = about(lead);
    const struct api_event event = {
        .about = owner,
        .job = lead->spec->name,
        .number = lead->told.events++,
        .reason = reason_name(reason),
        .message = message,
        .warning = reason_is_warning(reason),
        .controller = "drarun.dev/launcher",
        .instance = lead->options->holder,
    };
    api_event_write(lead->cluster, &event);
}

void lead_event_end(struct lead *lead, const char *result)
{
    const json_t *cause = json_object_get(lead->attempt.report, "cause");
    const char *text = json_string_value(json_object_get(cause, "text"));
    char plain[64];
    snprintf(plain, sizeof plain, "the job ended with status %d", lead->status);
    enum reason reason = strcmp(result, "succeeded") == 0   ? REASON_SUCCEEDED
                         : strcmp(result, "cancelled") == 0 ? REASON_CANCELLED
                                                            : REASON_FAILED;
    lead_event(lead, reason, text ? text : plain);
}
