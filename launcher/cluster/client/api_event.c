/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/api_event.h"

#include <string.h>

#include "launcher/cluster/client/job_clock.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"

#define MESSAGE_MAX 1000 /* the API takes 1024 bytes */

static void on_created(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    (void)answer, (void)arg;
    if (err)
        log_verbose("an Event was not written: %s", err->text);
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

static json_t *object_of(const struct api_event *event)
{
    char now[TIMESTAMP_SIZE];
    int64_t ms = lead_now();
    timestamp_format(ms, now, sizeof now);
    now[strlen("2026-01-01T00:00:00")] = 'Z'; /* metav1.Time has no fraction */
    now[strlen("2026-01-01T00:00:00Z")] = '\0';
    return json_pack(
        "{s:s, s:s, s:{s:o, s:O}, s:O, s:s, s:o, s:s, s:s, s:s, s:i, s:{s:s}, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name",
        json_sprintf("%s.%llx.%x", event->job, (unsigned long long)ms, event->number), "namespace",
        json_object_get(event->about, "namespace"), "involvedObject", event->about, "reason",
        event->reason, "message", message_of(event->message), "type",
        event->warning ? "Warning" : "Normal", "firstTimestamp", now, "lastTimestamp", now, "count",
        1, "source", "component", "drarun", "reportingComponent", event->controller,
        "reportingInstance", event->instance);
}

void api_event_write(struct cluster *cluster, const struct api_event *event)
{
    struct drarun_error err = {0};
    const struct kube_target target = {
        .resource = &kube_events,
        .namespace_ = json_string_value(json_object_get(event->about, "namespace"))};
    CLEANUP(json_decrefp) json_t *object = object_of(event);
    if (object)
        kube_create(cluster->client, &target, object, NULL, on_created, NULL, NULL, &err);
    if (!object || err.code)
        log_verbose("no Event %s: %s", event->reason, object ? err.text : "out of memory");
}

void api_event_write_last(struct cluster *cluster, const struct api_event *event)
{
    struct drarun_error err = {0};
    const struct kube_target target = {
        .resource = &kube_events,
        .namespace_ = json_string_value(json_object_get(event->about, "namespace"))};
    CLEANUP(json_decrefp) json_t *object = object_of(event);
    if (!object || cluster_create(cluster, &target, object, NULL, &err) < 0)
        log_verbose("no Event %s: %s", event->reason, object ? err.text : "out of memory");
}
