/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher that does not start, while its workers may hold their devices: why, and for how long
 * it is waited for. */
#include <errno.h>

#include "jobs/gang/gang.h"
#include "jobs/gang/waiting.h"
#include "launcher/cluster/client/launcher_pod.h"
#include "launcher/cluster/controller/sight.h"
#include "lib/base/error.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

#define POD_MS 10000 /* in which a Job has a pod unless something is in the way, and it starts */
#define START_MIN_MS 5000 /* between two looks at a pod that does not start */
#define START_MAX_MS 60000
#define CLIENT_MS 10000 /* later than a client that waits, which knows Events */
#define PARTS_MAX 16    /* of such a pod: containers, volumes, conditions */

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

/* The spec stays as it is: it is read once. False: they are not known yet. */
static bool find_limits(struct sight *s, struct spec_timeouts *ret)
{
    if (!sight_noted(s, s->c->limits)) {
        if (!sight_has_spec(s))
            return false;
        sight_note(s, s->c->limits,
                   json_pack("{s:I, s:I, s:I}", "allocation",
                             (json_int_t)s->spec.timeouts.allocation, "nodes",
                             (json_int_t)s->spec.timeouts.nodes, "imagePull",
                             (json_int_t)s->spec.timeouts.image_pull));
    }
    const json_t *noted = sight_noted(s, s->c->limits);
    *ret = (struct spec_timeouts){
        .allocation = json_integer_value(json_object_get(noted, "allocation")),
        .nodes = json_integer_value(json_object_get(noted, "nodes")),
        .image_pull = json_integer_value(json_object_get(noted, "imagePull"))};
    return noted;
}

/* When the Job was last not suspended; 0: it is, or its controller has not seen it. That one's
 * clock may be slow: a Job has not begun before it was created. */
static int64_t begin_ms(const json_t *job)
{
    int64_t since, created = kube_created_ms(job);
    if (!timestamp_parse(value_text(json_object_get(job, "status"), "startTime"), &since))
        return 0;
    return since > created ? since : created;
}

static bool outlasts(int64_t limit, int64_t other)
{
    return other && (!limit || limit > other);
}

/* What fails has the time that a client that waits would give it. Events tell whether an autoscaler
 * has ordered a node: it may have. pod: NULL: there is none. */
static void judge(struct sight *s, const json_t *pod, const char *why, struct drarun_error *end)
{
    int64_t since = begin_ms(s->job), limit = 0;
    struct spec_timeouts timeouts;
    struct drarun_error late = {0};
    struct pod_state state;
    if (since == 0 || !find_limits(s, &timeouts))
        return;
    int64_t waited = controller_now(s->c) - since - CLIENT_MS;
    pod_state_read(pod, NULL, false, NULL, &state);
    if (state.phase == POD_UNSCHEDULED && outlasts(timeouts.nodes, timeouts.allocation))
        state.ordered_ms = since;
    int rc = gang_judge_launcher(&state, &timeouts, waited, &limit, &late);
    if (rc == -ETIME)
        error_kind(end, late.kind, ETIME, "%s: %s", late.text, why);
    else if (rc < 0)
        *end = late;
    else if (limit)
        sight_again(s, limit - waited);
}

/* As the pod itself says it; nothing where it runs, or while the look waits. */
static void add_start(struct sight *s, struct buf *words, struct drarun_error *end)
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
    if (launcher.text && launcher.fails)
        judge(s, pod, launcher.text, end);
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
static const char *pod_is_missing(struct sight *s, struct drarun_error *end)
{
    look_again(s);
    judge(s, NULL,
          "it has no pod: kubectl get events shows what refused it, such as a quota or Pod "
          "Security",
          end);
    return "the launcher has no pod: kubectl describe job shows what refuses it, such as a quota "
           "or Pod Security";
}

const char *starting_words(struct sight *s, struct buf *words, struct drarun_error *end)
{
    int64_t left = kube_created_ms(s->job) + POD_MS - controller_now(s->c);
    if (kube_has_condition(s->job, "Suspended"))
        return "the launcher's Job is suspended: kubectl describe job shows which queue holds it";
    if (left > 0) {
        sight_again(s, left);
        return NULL;
    }
    if (!has_pod(s))
        return pod_is_missing(s, end);
    add_start(s, words, end);
    return words->data;
}
