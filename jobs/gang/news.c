/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/news.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/pod_security.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

/* The member of core/v1, else that of events.k8s.io/v1. */
static const json_t *either(const json_t *event, const char *core, const char *events)
{
    const json_t *value = json_object_get(event, core);
    return value ? value : json_object_get(event, events);
}

struct news_subject news_subject(const json_t *event)
{
    const json_t *object = either(event, "involvedObject", "regarding");
    return (struct news_subject){.kind = value_text(object, "kind"),
                                 .name = value_text(object, "name"),
                                 .namespace = value_text(object, "namespace"),
                                 .uid = value_text(object, "uid")};
}

/* words: one of them must be in the message; NULL: any message. The first row that fits counts. */
static const struct {
    const char *reason;
    const char *words[3];
    enum news_kind kind;
} reasons[] = {
    {"FailedScheduling", {"Failed to schedule pod, "}, NEWS_NO_SCALE_UP}, /* of Karpenter */
    {"FailedScheduling", {NULL}, NEWS_SCHEDULING_FAILED},
    {"TriggeredScaleUp", {NULL}, NEWS_SCALE_UP},
    {"Nominated", {NULL}, NEWS_SCALE_UP},
    {"NotTriggerScaleUp", {NULL}, NEWS_NO_SCALE_UP},
    {"FailedScaleUp", {NULL}, NEWS_NO_SCALE_UP},
    {"FailedResourceClaimCreation", {NULL}, NEWS_CLAIM_FAILED},
    {"FailedCreate", {NULL}, NEWS_CREATE_FAILED},
    {"FailedPrepareDynamicResources", {NULL}, NEWS_PREPARE_FAILED},
    {"FailedMount", {"Unable to attach or mount volumes"}, NEWS_MOUNT_LATE},
    {"FailedMount", {NULL}, NEWS_MOUNT_FAILED},
    {"FailedAttachVolume", {NULL}, NEWS_MOUNT_FAILED},
    {"FailedCreatePodSandBox", {NULL}, NEWS_SANDBOX_FAILED},
    {"NetworkNotReady", {NULL}, NEWS_SANDBOX_FAILED},
    {"Pulling", {NULL}, NEWS_PULLING},
    {"Pulled", {NULL}, NEWS_PULLED},
    {"Failed", {"Failed to pull image"}, NEWS_PULL_FAILED},
    {"Failed", {"ErrImagePull", "ImagePullBackOff"}, NEWS_NONE},
    {"Failed", {NULL}, NEWS_START_FAILED},
    {"Pending", {NULL}, NEWS_QUEUED},
    {"NodeNotReady", {NULL}, NEWS_NODE_NOT_READY},
};

static bool has_word(const char *message, const char *const words[3])
{
    for (size_t i = 0; i < 3 && words[i]; i++)
        if (strstr(message, words[i]))
            return true;
    return !words[0];
}

enum news_kind news_kind(const json_t *event)
{
    const char *reason = value_text(event, "reason");
    const char *message = json_string_value(either(event, "message", "note"));
    for (size_t i = 0; reason && i < ARRAY_LEN(reasons); i++)
        if (strcmp(reason, reasons[i].reason) == 0 &&
            has_word(message ? message : "", reasons[i].words))
            return reasons[i].kind;
    return NEWS_NONE;
}

/* The first of the texts that is a time; NULL: none is. */
static const char *first_time(const char *const texts[], size_t count, int64_t *ret_ms)
{
    *ret_ms = 0;
    for (size_t i = 0; i < count; i++)
        if (timestamp_parse(texts[i], ret_ms))
            return texts[i];
    return NULL;
}

/* Both APIs keep the times in several places, of which any may be null. */
static const char *begin_time(const json_t *event, int64_t *ret_ms)
{
    const char *const texts[] = {
        json_string_value(either(event, "firstTimestamp", "deprecatedFirstTimestamp")),
        value_text(event, "eventTime"),
        value_text(json_object_get(event, "metadata"), "creationTimestamp"),
    };
    return first_time(texts, ARRAY_LEN(texts), ret_ms);
}

const char *news_time(const json_t *event, int64_t *ret_ms)
{
    const char *const texts[] = {
        value_text(json_object_get(event, "series"), "lastObservedTime"),
        json_string_value(either(event, "lastTimestamp", "deprecatedLastTimestamp")),
    };
    const char *text = first_time(texts, ARRAY_LEN(texts), ret_ms);
    return text ? text : begin_time(event, ret_ms);
}

static uint32_t read_count(const json_t *event)
{
    json_int_t count =
        json_integer_value(json_object_get(json_object_get(event, "series"), "count"));
    if (count <= 0)
        count = json_integer_value(either(event, "count", "deprecatedCount"));
    return count <= 0 ? 1 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static void empty(struct news *news)
{
    for (size_t i = 0; i < NEWS_KIND_COUNT; i++)
        free(news->items[i].text);
    memset(news->items, 0, sizeof news->items);
}

static int64_t newest(const struct news *news)
{
    int64_t at = 0;
    for (size_t i = 0; i < NEWS_KIND_COUNT; i++)
        if (news->items[i].text && news->items[i].at_ms > at)
            at = news->items[i].at_ms;
    return at;
}

/* Whether the Event is about the object whose news these are. */
static bool same_object(struct news *news, const char *uid, int64_t at)
{
    if (!uid || strcmp(news->uid, uid) == 0)
        return true;
    if (news->uid[0] && at < newest(news))
        return false;
    empty(news);
    snprintf(news->uid, sizeof news->uid, "%s", uid);
    return true;
}

/* What it says, the caller's; of a pod that Pod Security refuses also what mends that. */
static char *words_of(const json_t *event, enum news_kind kind)
{
    const char *message = json_string_value(either(event, "message", "note"));
    const char *namespace = news_subject(event).namespace;
    struct buf words = BUF_INIT;
    bool refused = kind == NEWS_CREATE_FAILED && message && namespace &&
                   pod_security_words(message, namespace, &words) && !words.failed;
    char *text = refused ? buf_take(&words) : strdup(message ? message : "");
    buf_done(&words);
    return text;
}

bool news_add(struct news *news, const json_t *event)
{
    enum news_kind kind = news_kind(event);
    int64_t from, at;
    begin_time(event, &from);
    news_time(event, &at);
    if (kind == NEWS_NONE || !same_object(news, news_subject(event).uid, at))
        return false;
    struct news_item *item = &news->items[kind];
    if (item->text && at < item->at_ms)
        return false;
    char *text = words_of(event, kind);
    if (!text)
        return false;
    uint32_t same = read_count(event), count = same;
    if (item->text && strcmp(item->text, text) != 0)
        count += item->count;
    else if (item->count > count)
        count = item->count;
    free(item->text);
    *item = (struct news_item){.text = text,
                               .at_ms = at,
                               .from_ms = item->from_ms ? item->from_ms : from,
                               .order = ++news->order,
                               .count = count,
                               .same = same};
    return true;
}

void news_done(struct news *news)
{
    empty(news);
    *news = (struct news){0};
}

const struct news *news_about(const struct news *news, const char *uid)
{
    bool foreign = news && news->uid[0] && (!uid || strcmp(news->uid, uid) != 0);
    return foreign ? NULL : news;
}

const struct news_item *news_get(const struct news *news, enum news_kind kind)
{
    return news && news->items[kind].text ? &news->items[kind] : NULL;
}

/* Seconds are all that most Events have, so that the order of arrival decides within one. */
static const struct news_item *unless_later(const struct news *news, enum news_kind kind,
                                            enum news_kind other)
{
    const struct news_item *item = news_get(news, kind), *end = news_get(news, other);
    bool over =
        item && end &&
        (end->at_ms > item->at_ms || (end->at_ms == item->at_ms && end->order > item->order));
    return over ? NULL : item;
}

const struct news_item *news_pulling(const struct news *news)
{
    return unless_later(news, NEWS_PULLING, NEWS_PULLED)
               ? unless_later(news, NEWS_PULLING, NEWS_PULL_FAILED)
               : NULL;
}

const struct news_item *news_scale_up(const struct news *news)
{
    return unless_later(news, NEWS_SCALE_UP, NEWS_NO_SCALE_UP);
}

int64_t news_ordered_ms(const struct news *news)
{
    const struct news_item *item = news_get(news, NEWS_SCALE_UP);
    if (!item)
        return 0;
    return item->from_ms ? item->from_ms : INT64_MAX;
}
