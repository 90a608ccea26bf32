/* SPDX-License-Identifier: Apache-2.0 */
/* What a PodGroup tells of the workers that have no reason of their own to wait. */
#include <string.h>

#include "jobs/gang/waiting_private.h"
#include "lib/base/cleanup.h"

/* Of a pod that fits alone and whose gang does not: 1.36 says "pod group is unschedulable, waiting
 * for minCount pods from a gang to be scheduled, ..." of it, 1.37 "pod group is unschedulable,
 * minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, ...", or without the first words
 * (pkg/scheduler/schedule_one_podgroup.go, framework/plugins/gangscheduling). */
static bool is_of_gang(const char *message)
{
    static const char *const words[] = {"pod group is unschedulable", "waiting for minCount pods",
                                        "minCount ("};
    for (size_t i = 0; message && i < ARRAY_LEN(words); i++)
        if (strncmp(message, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

bool waiting_asks_group(const struct pod_state *w)
{
    return w->phase == POD_UNSCHEDULED && w->group && !w->deleting && !w->node_comes &&
           (!w->reason || (w->unschedulable && is_of_gang(w->message)));
}

const char *waiting_group(const struct pod_state *workers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (waiting_asks_group(&workers[i]))
            return workers[i].group;
    return NULL;
}

/* 1.36 calls it PodGroupScheduled, later versions PodGroupInitiallyScheduled; once it is True the
 * scheduler leaves it so. */
static const json_t *condition_of(const json_t *group)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(json_object_get(group, "status"), "conditions"), i, each)
    {
        const char *type = json_string_value(json_object_get(each, "type"));
        if (type && (strcmp(type, "PodGroupInitiallyScheduled") == 0 ||
                     strcmp(type, "PodGroupScheduled") == 0))
            return each;
    }
    return NULL;
}

/* The first worker of the group that has no room, which keeps the others waiting. */
static void add_blocker(const struct pod_state *workers, uint32_t count, const char *group,
                        struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct pod_state *w = &workers[i];
        if (w->phase != POD_UNSCHEDULED || !w->unschedulable || waiting_asks_group(w) ||
            !w->group || strcmp(w->group, group) != 0)
            continue;
        cleanup_free char *words = scheduler_words(w->message);
        buf_printf(out, "%sno node has room for worker %u%s%s", out->len > 0 ? "; " : "", i,
                   words ? ": " : "", words ? words : "");
        return;
    }
}

static void add_failure(const json_t *condition, const char *blocker, struct buf *out)
{
    const char *reason = json_string_value(json_object_get(condition, "reason"));
    const char *message = json_string_value(json_object_get(condition, "message"));
    cleanup_free char *words = scheduler_words(message);
    bool says = words && strcmp(words, "pod group is unschedulable") != 0;
    buf_printf(out, "cannot be scheduled (%s)", reason && reason[0] ? reason : "no reason");
    if (says)
        buf_printf(out, ": %s", words);
    if (blocker)
        buf_printf(out, "%s%s", says ? "; " : ": ", blocker);
}

/* The scheduler does not look at a gang of which too few pods are there. */
static bool add_shortage(const struct pod_state *workers, uint32_t count,
                         const struct waiting_group *group, struct buf *out)
{
    const json_t *policy =
        json_object_get(json_object_get(group->object, "spec"), "schedulingPolicy");
    json_int_t wanted =
        json_integer_value(json_object_get(json_object_get(policy, "gang"), "minCount"));
    uint32_t there = 0;
    for (uint32_t i = 0; i < count; i++)
        there += workers[i].group && strcmp(workers[i].group, group->name) == 0;
    if (wanted <= (json_int_t)there)
        return false;
    buf_printf(out, "waits for %lld pods (minCount); this job has %u of them", (long long)wanted,
               there);
    return true;
}

char *group_words(const struct pod_state *workers, uint32_t count, uint32_t worker,
                  const struct waiting_group *group, bool *ret_stuck)
{
    const struct pod_state *w = &workers[worker];
    struct buf out = BUF_INIT, blocker = BUF_INIT;
    if (!group || !waiting_asks_group(w) || strcmp(w->group, group->name) != 0)
        return NULL;
    const json_t *condition = condition_of(group->object);
    const char *status = json_string_value(json_object_get(condition, "status"));
    bool says = true;
    *ret_stuck = !group->object;
    add_blocker(workers, count, group->name, &blocker);
    buf_printf(&out, "PodGroup %s ", group->name);
    if (!group->object)
        buf_add_str(&out, "does not exist: create it, or correct schedulingGroup in spec.template");
    else if (status && strcmp(status, "False") == 0)
        add_failure(condition, blocker.data, &out);
    else
        says = add_shortage(workers, count, group, &out);
    char *words = says && !out.failed && !blocker.failed ? buf_take(&out) : NULL;
    buf_done(&out);
    buf_done(&blocker);
    return words;
}
