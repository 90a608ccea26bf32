/* SPDX-License-Identifier: Apache-2.0 */
/* The workers at one look, and what among it no waiting cures. */
#include "jobs/gang/gang_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static const char *or_none(const char *text)
{
    return text ? text : "no message";
}

__attribute__((format(printf, 4, 5))) static void set_fatal(struct gang_facts *facts,
                                                            uint32_t worker,
                                                            enum drarun_errkind kind,
                                                            const char *format, ...)
{
    if (facts->fatal_text[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(facts->fatal_text, sizeof facts->fatal_text, format, args);
    va_end(args);
    facts->fatal = worker;
    facts->fatal_kind = kind;
}

bool gang_end_is_final(enum pod_end end)
{
    return end == POD_END_EXIT || end == POD_END_OOM || end == POD_END_START ||
           end == POD_END_DEADLINE;
}

/* Before its ranks have started a worker runs only the agent. */
static void fatal_end(const struct pod_state *w, uint32_t i, struct gang_facts *facts)
{
    if (w->phase != POD_ENDED || w->deleting || !gang_end_is_final(w->end))
        return;
    const char *container = w->container ? w->container : "?";
    if (w->message && strstr(w->message, "exec format error"))
        set_fatal(facts, i, DRARUN_ERR_INFRASTRUCTURE,
                  "container %s could not be started: its image has no program for the "
                  "architecture of this node (%s); drarun's own image can have several: "
                  "scripts/image --also",
                  container, w->message);
    else if (w->end == POD_END_START)
        set_fatal(facts, i, DRARUN_ERR_INFRASTRUCTURE, "container %s could not be started: %s",
                  container, or_none(w->message));
    else if (w->end == POD_END_OOM)
        set_fatal(facts, i, DRARUN_ERR_INFRASTRUCTURE,
                  "container %s ran out of memory before any rank had started: its limit is too "
                  "low for the agent",
                  container);
    else if (w->end == POD_END_DEADLINE)
        set_fatal(facts, i, DRARUN_ERR_TIMEOUT,
                  "the pod reached its activeDeadlineSeconds before all workers were up");
    else
        set_fatal(facts, i, DRARUN_ERR_INFRASTRUCTURE,
                  "container %s ended with status %d before any rank had started%s%s; its log says "
                  "more: kubectl logs %s -c %s",
                  container, w->exit_code, w->message ? ": " : "",
                  w->message                           ? w->message
                  : w->exit_code == POD_RUNTIME_STATUS ? POD_RUNTIME_WORDS
                                                       : "",
                  w->name ? w->name : "?", container);
}

/* A registry's answer that the image is not there, or not for us: containerd, docker, quay, GCR. */
static bool image_is_missing(const char *message)
{
    static const char *const words[] = {"not found",
                                        "manifest unknown",
                                        "does not exist",
                                        "pull access denied",
                                        "insufficient_scope",
                                        "no match for platform",
                                        "repository name not known",
                                        "403 Forbidden",
                                        "401 Unauthorized"};
    for (size_t i = 0; message && i < ARRAY_LEN(words); i++)
        if (strstr(message, words[i]))
            return true;
    return false;
}

static void fatal_image(const struct pod_state *w, uint32_t i, struct gang_facts *facts)
{
    char image[400];
    if (w->phase != POD_PULLING || !w->reason)
        return;
    pod_state_image(w, image, sizeof image);
    if (strcmp(w->reason, "InvalidImageName") == 0)
        set_fatal(facts, i, DRARUN_ERR_SPEC, "%s is not a valid name", image);
    else if (strcmp(w->reason, "ErrImageNeverPull") == 0)
        set_fatal(facts, i, DRARUN_ERR_SPEC, "%s is not on node %s and imagePullPolicy is Never",
                  image, w->node ? w->node : "?");
    const struct news_item *failed = news_get(w->news, NEWS_PULL_FAILED);
    if (failed && failed->count >= GANG_PULL_TRIES && image_is_missing(failed->text))
        set_fatal(facts, i, DRARUN_ERR_SPEC, "%s could not be pulled in %u tries: %s", image,
                  failed->count, failed->text);
}

bool gang_image_is_lost(const struct pod_state *pod, struct drarun_error *err)
{
    struct gang_facts facts = {.count = 1};
    fatal_image(pod, 0, &facts);
    if (facts.fatal_text[0])
        error_kind(err, facts.fatal_kind, ECANCELED, "%s", facts.fatal_text);
    return facts.fatal_text[0];
}

static void lacks_class(uint32_t i, const char *name, size_t length, struct gang_facts *facts)
{
    set_fatal(facts, i, DRARUN_ERR_SPEC,
              "device class %.*s does not exist: install the driver that brings it, or name "
              "another under spec.devices (kubectl get deviceclasses)",
              (int)length, name);
}

/* "request gpu-0: device class gpu.example.com does not exist" of the scheduler. */
static void fatal_class(const struct pod_state *w, uint32_t i, struct gang_facts *facts)
{
    static const char words[] = "device class ";
    const char *at = w->unschedulable && w->message ? strstr(w->message, words) : NULL;
    const char *name = at ? at + strlen(words) : NULL;
    const char *end = name ? strstr(name, " does not exist") : NULL;
    if (end)
        lacks_class(i, name, (size_t)(end - name), facts);
}

/* The cluster's controllers try without end, and the count of a quota may be behind what was
 * deleted; what others use up may not become free for long. */
static void look_for_refusal(const struct gang_input *input, struct gang_facts *facts)
{
    const struct news_item *failed = news_get(input->job, NEWS_CREATE_FAILED);
    for (uint32_t i = 0; i < input->count && !facts->refused_text[0]; i++) {
        if (input->workers[i].claim != CLAIM_REFUSED)
            continue;
        facts->refused = i;
        snprintf(facts->refused_text, sizeof facts->refused_text, "its claim is refused: %s",
                 or_none(input->workers[i].claim_message));
    }
    if (!facts->refused_text[0] && failed && facts->present < input->count &&
        strstr(failed->text, "forbid"))
        snprintf(facts->refused_text, sizeof facts->refused_text,
                 "the workers' pods are refused: %s", failed->text);
}

/* The kubelet could not ask the API server: "failed to sync secret cache: timed out waiting for the
 * condition" (pkg/kubelet/util/manager/watch_based_manager.go). That passes, and says nothing
 * of what the container names. */
static bool kubelet_is_behind(const char *message)
{
    return message && strstr(message, "failed to sync ");
}

static bool scheduler_looked(const struct pod_state *w)
{
    return w->phase == POD_UNSCHEDULED && w->unschedulable && !w->node_comes;
}

static void count_worker(const struct pod_state *w, uint32_t i, struct gang_facts *facts)
{
    facts->claims += w->claim != CLAIM_NONE;
    facts->allocated += w->claim == CLAIM_ALLOCATED;
    facts->claimed += w->claim >= CLAIM_PENDING;
    facts->placed += pod_state_placed(w);
    facts->up += pod_state_placed(w) && w->phase == POD_RUNNING;
    facts->holding += pod_state_holds(w);
    facts->present += w->phase != POD_ABSENT;
    facts->queued |= w->phase == POD_GATED;
    facts->node_comes |= w->node_comes;
    if (w->ordered_ms && (!facts->ordered_ms || w->ordered_ms < facts->ordered_ms))
        facts->ordered_ms = w->ordered_ms;
    facts->image_comes |= w->image_comes;
    /* a claim does not go before its pod */
    facts->releasing |= w->deleting || (w->claim == CLAIM_DELETING && w->phase == POD_ABSENT);
    if (scheduler_looked(w)) {
        facts->pending++;
        if (facts->blocked == GANG_NOBODY)
            facts->blocked = i;
    }
    bool lost = w->phase == POD_ENDED || w->deleting || w->disrupted || w->not_ready ||
                w->claim == CLAIM_DELETING;
    if (lost && facts->lost == GANG_NOBODY)
        facts->lost = i;
    facts->vanished |= w->vanished;
    /* nobody allocates to a pod that has its node, and the kubelet refuses it without end */
    if (w->phase == POD_BOUND && w->claim == CLAIM_PENDING && facts->stranded == GANG_NOBODY)
        facts->stranded = i;
    /* what a pod names may be created after it: neither is the end at once */
    bool trouble = (w->phase == POD_CREATING && w->failing && !kubelet_is_behind(w->message)) ||
                   w->claim == CLAIM_NO_TEMPLATE;
    if (trouble && facts->trouble == GANG_NOBODY)
        facts->trouble = i;
}

void gang_facts(const struct gang_input *input, struct gang_facts *ret_facts)
{
    struct gang_facts facts = {.count = input->count,
                               .queued = input->suspended,
                               .lost = GANG_NOBODY,
                               .stranded = GANG_NOBODY,
                               .blocked = GANG_NOBODY,
                               .trouble = GANG_NOBODY,
                               .fatal = GANG_NOBODY,
                               .refused = GANG_NOBODY};
    for (uint32_t i = 0; i < input->count; i++) {
        const struct pod_state *w = &input->workers[i];
        count_worker(w, i, &facts);
        fatal_end(w, i, &facts);
        fatal_image(w, i, &facts);
        fatal_class(w, i, &facts);
    }
    look_for_refusal(input, &facts);
    /* the scheduler does not look at a pod again because its class was deleted */
    if (input->no_class && facts.pending > 0)
        lacks_class(facts.blocked, input->no_class, strlen(input->no_class), &facts);
    *ret_facts = facts;
}
