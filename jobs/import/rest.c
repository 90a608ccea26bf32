/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads of several kinds share, and what is left out of them. */
#include <stdio.h>
#include <stdlib.h>

#include "jobs/import/parts.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

json_t *import_queue(const struct import *im)
{
    json_t *metadata = json_object_get(im->workload->value, "metadata");
    return json_object_get(json_object_get(metadata, "labels"), IMPORT_QUEUE_LABEL);
}

/* With a queue the launcher's own Job would stay suspended: Kueue looks after the workers' alone.
 */
static void take_suspend(struct import *im, const struct reader_node *policy)
{
    struct reader_node node;
    if (!reader_get(policy, "suspend", &node) || !json_is_boolean(node.value))
        return;
    if (!import_queue(im))
        json_object_set(im->job, "suspend", node.value);
    else if (json_is_true(node.value))
        reader_fail(&node, "left out: Kueue suspends and resumes the job itself");
}

void import_deadline(struct import *im, const struct reader_node *policy)
{
    struct reader_node node;
    char text[32];
    if (!reader_get(policy, "activeDeadlineSeconds", &node) || !json_is_integer(node.value))
        return;
    json_t *timeouts = import_child(im->job, "timeouts");
    const char *total = json_string_value(json_object_get(timeouts, "total"));
    json_int_t seconds = json_integer_value(node.value);
    if (total && strtoll(total, NULL, 10) <= seconds)
        return;
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT "s", seconds);
    json_object_set_new(timeouts, "total", json_string(text));
}

/* What Job and MPIJob's runPolicy share. */
void import_policy(struct import *im, const struct reader_node *policy)
{
    import_number(im, policy, "backoffLimit", "restarts");
    import_number(im, policy, "ttlSecondsAfterFinished", "ttlSecondsAfterFinished");
    import_deadline(im, policy);
    take_suspend(im, policy);
}

void import_rest(const struct reader_node *object, const char *known, const char *why)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object->value, key, value)
    {
        if (!words_has(known, key) && !json_is_null(value))
            reader_fail_key(object, key, "left out: %s", why);
    }
}

void import_rest_of_policy(const struct reader_node *policy)
{
    static const char *const unused[][2] = {
        {"cleanPodPolicy", "pods end with the job"},
        {"schedulingPolicy", "all workers start or none; name a queue for Kueue"},
        {"managedBy", "another controller's"},
    };
    import_leave_out(policy, unused, ARRAY_LEN(unused));
    import_rest(policy,
                "backoffLimit ttlSecondsAfterFinished activeDeadlineSeconds suspend cleanPodPolicy "
                "schedulingPolicy managedBy",
                "a job has no such policy");
}

void import_rest_of_job(const struct reader_node *spec)
{
    static const char *const unused[][2] = {
        {"successPolicy", "a job succeeds when all ranks do"},
        {"backoffLimitPerIndex", "the job restarts as a whole"},
        {"maxFailedIndexes", "the job restarts as a whole"},
        {"podReplacementPolicy", "pods are replaced when all have ended"},
        {"managedBy", "another controller's"},
    };
    import_leave_out(spec, unused, ARRAY_LEN(unused));
    import_rest(spec,
                "parallelism completions completionMode backoffLimit activeDeadlineSeconds "
                "ttlSecondsAfterFinished suspend template selector manualSelector "
                "podFailurePolicy successPolicy backoffLimitPerIndex maxFailedIndexes "
                "podReplacementPolicy managedBy",
                "a job has no such setting");
}

static void explain_restarts(const struct reader_node *holder)
{
    struct reader_node policy;
    const char *text = import_text(holder, "restartPolicy");
    if (reader_get(holder, "restartPolicy", &policy) && words_has("OnFailure ExitCode", text))
        reader_fail(&policy, "left out: a rank that fails ends the attempt; spec.restarts says how "
                             "often the job starts again");
}

void import_rest_of_replicas(const struct reader_node *replicas)
{
    import_rest(replicas, "replicas template restartPolicy", "workers have no such setting");
    explain_restarts(replicas);
}

void import_rest_of_template(const struct reader_node *template)
{
    struct reader_node metadata, spec;
    import_rest(template, "metadata spec apiVersion kind status", "no part of a pod template");
    if (import_object(template, "metadata", &metadata))
        import_rest(&metadata, IMPORT_ADDED "labels annotations",
                    "workers have labels and annotations");
    if (import_object(template, "spec", &spec))
        explain_restarts(&spec);
}

void import_leave_out(const struct reader_node *object, const char *const keys[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_object_get(object->value, keys[i][0]))
            reader_fail_key(object, keys[i][0], "left out: %s", keys[i][1]);
}
