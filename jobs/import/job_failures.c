/* SPDX-License-Identifier: Apache-2.0 */
/* A Job's podFailurePolicy as the job's failurePolicy: there a failed pod, here the attempt that
 * its rank ends. Source: k8s.io/api/batch/v1 types.go, PodFailurePolicy. */
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/spec/failure_policy.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* What Kubernetes calls the disruption of a pod. */
static const char *const disruptions[] = {"evicted",      "preempted", "taint",
                                          "device-taint", "node-lost", "node-shutdown"};

static const char *action_of(const struct reader_node *rule)
{
    static const char *const actions[] = {"fail", "ignore", "restart"};
    const char *text = import_text(rule, "action");
    int index = words_index("FailJob Ignore Count", text, strlen(text));
    return index < 0 ? NULL : actions[index];
}

static void add_rule(json_t *rules, const char *key, json_t *value_take, const char *action)
{
    json_array_append_new(rules,
                          json_pack("{s:{s:o}, s:s}", "on", key, value_take, "action", action));
}

static bool has_code(const json_t *values, json_int_t code)
{
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value)
    {
        if (json_is_integer(value) && json_integer_value(value) == code)
            return true;
    }
    return false;
}

static void take_codes(const struct reader_node *rule, const char *action, json_t *rules)
{
    struct reader_node codes, name;
    if (!import_object(rule, "onExitCodes", &codes))
        return;
    bool others = strcmp(import_text(&codes, "operator"), "NotIn") == 0;
    const json_t *values = json_object_get(codes.value, "values");
    json_t *taken = json_array();
    for (json_int_t code = 1; code <= FAILURE_EXIT_CODE_MAX; code++)
        if (has_code(values, code) != others)
            json_array_append_new(taken, json_integer(code));
    if (reader_get(&codes, "containerName", &name))
        reader_fail(&name, "left out: an exit status is the ranks'");
    if (json_array_size(taken) > 0)
        add_rule(rules, "exitCodes", taken, action);
    else
        json_decref(taken);
}

static void take_conditions(const struct reader_node *rule, const char *action, json_t *rules)
{
    struct reader_node list;
    if (!reader_get(rule, "onPodConditions", &list) || !json_is_array(list.value))
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node condition = reader_item(&list, i);
        if (strcmp(import_text(&condition, "type"), "DisruptionTarget") != 0) {
            reader_fail(&condition,
                        "left out: DisruptionTarget is the only pod condition that a job supports");
            continue;
        }
        for (size_t d = 0; d < ARRAY_LEN(disruptions); d++)
            add_rule(rules, "cause", json_string(disruptions[d]), action);
    }
}

static void take_rule(const struct reader_node *rule, json_t *rules)
{
    const char *action = action_of(rule);
    struct reader_node at;
    if (action) {
        take_codes(rule, action, rules);
        take_conditions(rule, action, rules);
    } else if (reader_get(rule, "action", &at)) {
        reader_fail(&at, "left out: the job restarts as a whole");
    }
}

void import_pod_failures(struct import *im, const struct reader_node *job)
{
    struct reader_node policy, list;
    json_t *rules = json_array();
    if (import_object(job, "podFailurePolicy", &policy) && reader_get(&policy, "rules", &list) &&
        json_is_array(list.value))
        for (size_t i = 0; i < json_array_size(list.value); i++) {
            struct reader_node rule = reader_item(&list, i);
            take_rule(&rule, rules);
        }
    if (json_array_size(rules) > FAILURE_RULES_MAX)
        reader_fail_key(job, "podFailurePolicy", "left out: a job has at most %d rules",
                        FAILURE_RULES_MAX);
    else if (json_array_size(rules) > 0)
        json_object_set_new(im->job, "failurePolicy", json_pack("{s:O}", "rules", rules));
    else if (json_object_get(job->value, "podFailurePolicy"))
        reader_fail_key(job, "podFailurePolicy", "left out: it has no rule that a job can have");
    json_decref(rules);
}
