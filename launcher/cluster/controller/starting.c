/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher that does not start, while its workers may hold their devices. */
#include <stdio.h>

#include "jobs/gang/waiting.h"
#include "launcher/cluster/client/launcher_pod.h"
#include "launcher/cluster/controller/sight.h"
#include "lib/doc/value.h"

#define POD_MS 10000 /* in which a Job has a pod unless something is in the way, and it starts */
#define START_MIN_MS 5000 /* between two looks at a pod that does not start */
#define START_MAX_MS 60000
#define PARTS_MAX 16 /* of such a pod: containers, volumes, conditions */

static void trim_starting(json_t *pod)
{
    static const char *const status[] =
        {"phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses",
         NULL},
                             *const of_spec[] = {"containers", "initContainers", "volumes", NULL};
    json_t *spec = json_object_get(pod, "spec"), *kept = json_object_get(pod, "status");
    sight_trim_pod(pod);
    pod_state_trim(pod);
    for (const char *const *list = of_spec; *list; list++)
        value_cut_at(spec, *list, PARTS_MAX);
    value_keep(kept, status);
    for (const char *const *list = status + 3; *list; list++)
        value_cut_at(kept, *list, PARTS_MAX);
}

static const json_t *find_starting(const struct sight *s, const json_t *list)
{
    const json_t *pod, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        if (launcher_pod_is_one(pod) && kube_is_owned_by(pod, kube_uid(s->job)) &&
            !kube_is_terminating(pod))
            found = pod;
    }
    return found;
}

/* Pods are not watched: it is looked at again, less and less often. */
static void look_again(const struct sight *s)
{
    int64_t ms = (controller_now(s->c) - kube_created_ms(s->job)) / 4;
    sight_again(s, ms < START_MIN_MS ? START_MIN_MS : ms < START_MAX_MS ? ms : START_MAX_MS);
}

/* As the pod itself says it; nothing where it runs, or while the look waits. */
static void add_start(struct sight *s, struct buf *words)
{
    struct waiting_launcher launcher = {0};
    const struct sight_answer *list =
        sight_list_launchers(s, "status.phase=Pending", trim_starting);
    const json_t *pod = list ? find_starting(s, list->body) : NULL;
    if (!list)
        return;
    look_again(s);
    if (pod)
        waiting_of_launcher(pod, NULL, NULL, &launcher);
    if (launcher.text)
        buf_printf(words, "%s: %s",
                   launcher.fails ? "the launcher does not start"
                                  : "waiting for the launcher to start",
                   launcher.text);
    waiting_launcher_done(&launcher);
}

static bool has_pod(const struct sight *s)
{
    static const char *const counts[] = {"active", "succeeded", "failed"};
    const json_t *status = json_object_get(s->job, "status");
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (json_integer_value(json_object_get(status, counts[i])) > 0)
            return true;
    return false;
}

/* Only Events, which we may not read, tell what keeps its pod from being created. */
const char *starting_words(struct sight *s, struct buf *words)
{
    int64_t left = kube_created_ms(s->job) + POD_MS - controller_now(s->c);
    if (kube_has_condition(s->job, "Suspended"))
        return "the launcher's Job is suspended: kubectl describe job shows which queue holds it";
    if (left > 0) {
        sight_again(s, left);
        return NULL;
    }
    if (!has_pod(s))
        return "the launcher has no pod: kubectl describe job shows what refuses it, such as a "
               "quota or Pod Security";
    add_start(s, words);
    return words->data;
}
