/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that the cluster ended: what it is called, and what follows for the next attempt. */
#include <signal.h>
#include <string.h>

#include "jobs/outcome/cause.h"
#include "jobs/outcome/cause_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* docs/design/006-ends.md has this table. */
static const struct row {
    const char *deed;   /* after the worker; the cluster's words follow */
    const char *advice; /* of the message, and what to do in docs/messages.md */
    int status;         /* 0: infrastructure's */
    struct cause_restart restart;
} rows[] = {
    [POD_END_NONE] = {"ended", NULL, 0, {.retry = true}},
    [POD_END_EXIT] = {"ended its agent", NULL, 0, {.retry = true}},
    [POD_END_OOM] = {"was killed as a whole by the kernel's OOM killer",
                     "its processes need more memory than the container's limit; /dev/shm counts "
                     "too: raise resources.limits.memory",
                     128 + SIGKILL,
                     {.retry = true}},
    [POD_END_START] = {"could not be started",
                       "its node could not make the container: with restarts: N the next attempt "
                       "takes another node; kubectl describe pod has the runtime's message",
                       0,
                       {.retry = true, .avoid_node = true, .new_claims = true}},
    [POD_END_EVICTED] = {"was evicted",
                         "by a drain, or by its node for lack of memory or disk: restarts: N in "
                         "the spec runs the job again",
                         0,
                         {.retry = true}},
    [POD_END_PREEMPTED] = {"was preempted",
                           "a pod of higher priority took its place: a priorityClassName in the "
                           "template protects it",
                           0,
                           {.retry = true}},
    [POD_END_TAINT] = {"was ended by a taint of its node",
                       "kubectl describe node shows its taints: a toleration in the "
                       "template lets the pods stay",
                       0,
                       {.retry = true, .new_claims = true}},
    [POD_END_DEVICE_TAINT] = {"was ended by a taint of one of its devices",
                              "a driver or an administrator found the device faulty: kubectl get "
                              "resourceslices,devicetaintrules",
                              0,
                              {.retry = true, .new_claims = true}},
    [POD_END_NODE_LOST] = {"was lost with its node",
                           "kubectl get nodes shows whether it answers again: restarts: "
                           "N in the spec runs the job on another node",
                           0,
                           {.retry = true, .avoid_node = true, .new_claims = true}},
    [POD_END_NODE_SHUTDOWN] = {"was ended by the shutdown of its node",
                               "restarts: N in the spec runs the job again on another node",
                               0,
                               {.retry = true, .avoid_node = true, .new_claims = true}},
    [POD_END_DEADLINE] = {"reached the pod's activeDeadlineSeconds",
                          "timeouts.total bounds the whole job instead",
                          124,
                          {.retry = false}},
    [POD_END_REFUSED] = {"was not admitted by its node",
                         "its node had no room or no working device for it: kubectl "
                         "describe node; with restarts: N the next attempt takes another",
                         0,
                         {.retry = true, .avoid_node = true, .new_claims = true}},
    [POD_END_DELETED] = {"was deleted",
                         "somebody deleted the pod; drarun cancel ends a whole job",
                         0,
                         {.retry = true}},
    [POD_END_UNKNOWN] = {"ended for a reason that the cluster does not know",
                         "kubectl describe node shows what happened there: restarts: N"
                         " in the spec runs the job again",
                         0,
                         {.retry = true}},
};

static const struct row *row_of(enum pod_end end)
{
    return &rows[(size_t)end < ARRAY_LEN(rows) ? end : POD_END_UNKNOWN];
}

void cause_pod_sentence(const struct cause_story *story, struct buf *out)
{
    buf_printf(out, "worker %u", story->worker);
    if (story->pod && story->host)
        buf_printf(out, " (%s on %s)", story->pod, story->host);
    else if (story->pod || story->host)
        buf_printf(out, " (%s)", story->pod ? story->pod : story->host);
    if (story->end == POD_END_EXIT && story->code >= 0)
        buf_printf(out, ": its agent ended with status %d", story->code);
    else
        buf_printf(out, " %s", row_of(story->end)->deed);
    if (story->text)
        buf_printf(out, ": %s", story->text);
    else if (story->end == POD_END_EXIT && story->code == POD_RUNTIME_STATUS)
        buf_add_str(out, POD_RUNTIME_WORDS);
}

const char *cause_pod_advice(enum pod_end end)
{
    return row_of(end)->advice;
}

const char *cause_pod_deed(enum pod_end end)
{
    return row_of(end)->deed;
}

const char *cause_pod_cure(enum pod_end end)
{
    const char *advice = row_of(end)->advice; /* none of an agent that says why itself */
    return advice ? advice : "read the agent's messages in the report and in kubectl logs POD";
}

int cause_pod_end_status(enum pod_end end)
{
    int status = row_of(end)->status;
    return status ? status : error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}

/* ---- events ---- */

void cause_expect_pods(struct cause *cause)
{
    cause->pods = true;
}

bool cause_launcher_lost(struct cause *cause, const char *pod)
{
    struct cause_story story = {.kind = CAUSE_LAUNCHER, .pod = cause_clean_text(pod)};
    return cause_tell_take(cause, &story);
}

bool cause_pod_may_follow(const struct cause *cause)
{
    const struct cause_story *first = &cause->first;
    bool killed = first->kind == CAUSE_SIGNAL &&
                  (first->signo == SIGKILL || first->signo == SIGTERM) && !first->oom;
    return cause->pods && (killed || (first->kind == CAUSE_FAILURE && first->of_worker));
}

/* What the cluster did to the pod, as against an end of its own, which may be an echo. */
static bool is_done_to_it(enum pod_end end)
{
    return end != POD_END_NONE && end != POD_END_EXIT && end != POD_END_UNKNOWN;
}

/* An agent that could not serve, and left the reason in its container's status. */
static bool says_why(const struct cause *cause, const struct cause_pod *pod)
{
    const struct cause_story *first = &cause->first;
    return pod->end == POD_END_EXIT && pod->message && pod->message[0] &&
           first->kind == CAUSE_FAILURE && first->of_worker && first->worker == pod->worker;
}

/* Whether the pod's end began what the first cause tells. */
static bool explains(const struct cause *cause, const struct cause_pod *pod)
{
    const struct cause_story *first = &cause->first;
    if (!cause->pods || cause->settled)
        return false;
    if (!is_done_to_it(pod->end))
        return says_why(cause, pod);
    if (cause_pod_may_follow(cause))
        return first->worker == pod->worker;
    return cause_story_may_echo(first);
}

bool cause_pod(struct cause *cause, const struct cause_pod *pod)
{
    if (pod->by_us || pod->end == POD_END_NONE)
        return false;
    bool first = cause->first.kind == CAUSE_NONE;
    if (!first && !explains(cause, pod))
        return false;
    struct cause_story story = {.kind = CAUSE_POD,
                                .worker = pod->worker,
                                .end = pod->end,
                                .code = pod->exit_code,
                                .host = cause_clean_text(pod->node),
                                .pod = cause_clean_text(pod->pod),
                                .text = cause_clean_text(pod->message)};
    cause_story_done(&cause->first);
    cause->first = story;
    return first;
}

/* ---- the next attempt ---- */

/* What would end alike again: what the user wanted, and what the spec says. */
static bool error_may_pass(enum drarun_errkind kind)
{
    return kind == DRARUN_ERR_NONE || kind == DRARUN_ERR_INFRASTRUCTURE ||
           kind == DRARUN_ERR_CLUSTER;
}

struct cause_restart cause_restart(const struct cause *cause)
{
    const struct cause_story *first = &cause->first;
    switch (first->kind) {
    case CAUSE_NONE:
    case CAUSE_DONE:
    case CAUSE_TIMEOUT:
    case CAUSE_INTERRUPTED:
        return (struct cause_restart){0};
    case CAUSE_POD:
        return row_of(first->end)->restart;
    case CAUSE_FAILURE:
        return (struct cause_restart){.retry = error_may_pass(first->error)};
    default:
        return (struct cause_restart){.retry = true};
    }
}

struct cause_restart cause_restart_told(const json_t *cause)
{
    const char *end = json_string_value(json_object_get(cause, "end"));
    for (size_t i = 1; end && i < ARRAY_LEN(rows); i++)
        if (strcmp(pod_end_name((enum pod_end)i), end) == 0)
            return rows[i].restart;
    return (struct cause_restart){.retry = true};
}
