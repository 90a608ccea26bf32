/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/lead_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"

#define MESSAGE_MAX 1000 /* the API takes 1024 bytes */

static void on_created(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    (void)answer, (void)arg;
    if (err)
        log_verbose("an Event was not written: %s", err->text);
}

static json_t *about(const struct lead *lead)
{
    bool here = lead->options->here;
    return json_pack("{s:s, s:s, s:o, s:s, s:s}", "apiVersion", here ? "v1" : "batch/v1", "kind",
                     here ? "ConfigMap" : "Job", "name",
                     json_sprintf("%s%s", lead->spec->name, here ? "-status" : ""), "namespace",
                     lead->options->namespace, "uid", lead->owner_uid);
}

/* Cut between characters: the API takes no half of one. */
static json_t *message_of(const char *text)
{
    size_t length = strlen(text);
    if (length > MESSAGE_MAX)
        for (length = MESSAGE_MAX; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
    return json_stringn(text, length);
}

void lead_event(struct lead *lead, const char *reason, const char *message)
{
    struct drarun_error err = {0};
    char now[TIMESTAMP_SIZE];
    bool normal = strcmp(reason, "Started") == 0 || strcmp(reason, "Succeeded") == 0;
    const struct kube_target target = {.resource = &kube_events,
                                       .namespace_ = lead->options->namespace};
    timestamp_format(lead_now(), now, sizeof now);
    now[strlen("2026-01-01T00:00:00")] = 'Z'; /* metav1.Time has no fraction */
    now[strlen("2026-01-01T00:00:00Z")] = '\0';
    CLEANUP(json_decrefp)
    json_t *event = json_pack(
        "{s:s, s:s, s:{s:o, s:s}, s:o, s:s, s:o, s:s, s:s, s:s, s:i, s:{s:s}, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name",
        json_sprintf("%s.%llx.%x", lead->spec->name, (unsigned long long)lead_now(),
                     lead->events++),
        "namespace", lead->options->namespace, "involvedObject", about(lead), "reason", reason,
        "message", message_of(message), "type", normal ? "Normal" : "Warning", "firstTimestamp",
        now, "lastTimestamp", now, "count", 1, "source", "component", "drarun",
        "reportingComponent", "drarun.dev/launcher", "reportingInstance", lead->options->holder);
    if (event)
        kube_create(lead->cluster->client, &target, event, NULL, on_created, NULL, NULL, &err);
    if (!event || err.code)
        log_verbose("no Event %s: %s", reason, event ? err.text : "out of memory");
}

void lead_event_end(struct lead *lead, const char *result)
{
    const json_t *cause = json_object_get(lead->report, "cause");
    const char *text = json_string_value(json_object_get(cause, "text"));
    char plain[64];
    snprintf(plain, sizeof plain, "the job ended with status %d", lead->status);
    const char *reason = strcmp(result, "succeeded") == 0   ? "Succeeded"
                         : strcmp(result, "cancelled") == 0 ? "Cancelled"
                                                            : "Failed";
    lead_event(lead, reason, text ? text : plain);
}
