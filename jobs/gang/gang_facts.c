/* SPDX-License-Identifier: Apache-2.0 */
/* The workers at one look, and what among it no waiting cures. */
#include "jobs/gang/gang_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jobs/gang/waiting_private.h"
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

/* The end of a worker before the ranks: is it its own doing, so that another try would end alike?
 */
static bool is_final(enum pod_end end)
{
    return end == POD_END_EXIT || end == POD_END_OOM || end == POD_END_START ||
           end == POD_END_DEADLINE;
}

/* Before its ranks have started a worker runs only the agent. */
static void fatal_end(const struct pod_state *w, uint32_t i, struct gang_facts *facts)
{
    if (w->phase != POD_ENDED || w->deleting || !is_final(w->end))
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
static void look_for_refusal(const struct gang_input *input, uint32_t worker,
                             struct gang_facts *facts)
{
    const struct news_item *failed = news_get(input->job, NEWS_CREATE_FAILED);
    facts->refused = worker;
    if (worker != GANG_NOBODY)
        snprintf(facts->refused_text, sizeof facts->refused_text, "its claim is refused: %s",
                 or_none(input->workers[worker].claim_message));
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

/* What a pod names may be created after it: neither is the end at once. */
static bool is_in_trouble(const struct pod_state *w)
{
    return (w->phase == POD_CREATING && w->failing && !kubelet_is_behind(w->message)) ||
           w->claim == CLAIM_NO_TEMPLATE;
}

static bool is_lost(const struct pod_state *w)
{
    return w->phase == POD_ENDED || w->deleting || w->disrupted || w->not_ready ||
           w->claim == CLAIM_DELETING;
}

static void look_for_fatal(const struct pod_state *w, uint32_t i, struct gang_facts *facts)
{
    fatal_end(w, i, facts);
    fatal_image(w, i, facts);
    fatal_class(w, i, facts);
}

static bool is_fatal(const struct pod_state *w)
{
    struct gang_facts facts = {0};
    look_for_fatal(w, 0, &facts);
    return facts.fatal_text[0];
}

uint32_t gang_marks(const struct pod_state *w)
{
    const bool has[GANG_MARK_COUNT] = {
        [GANG_MARK_CLAIMED] = w->claim >= CLAIM_PENDING,
        [GANG_MARK_ALLOCATED] = w->claim == CLAIM_ALLOCATED,
        [GANG_MARK_PRESENT] = w->phase != POD_ABSENT,
        [GANG_MARK_PLACED] = pod_state_placed(w),
        [GANG_MARK_UP] = pod_state_placed(w) && w->phase == POD_RUNNING,
        [GANG_MARK_HOLDS] = pod_state_holds(w),
        [GANG_MARK_GATED] = w->phase == POD_GATED,
        [GANG_MARK_PENDING] = scheduler_looked(w),
        [GANG_MARK_NODE_COMES] = w->node_comes,
        [GANG_MARK_IMAGE_COMES] = w->image_comes,
        /* a claim does not go before its pod */
        [GANG_MARK_RELEASES] =
            w->deleting || (w->claim == CLAIM_DELETING && w->phase == POD_ABSENT),
        [GANG_MARK_LOST] = is_lost(w),
        [GANG_MARK_VANISHED] = w->vanished,
        /* nobody allocates to a pod that has its node, and the kubelet refuses it without end */
        [GANG_MARK_STRANDED] = w->phase == POD_BOUND && w->claim == CLAIM_PENDING,
        [GANG_MARK_TROUBLE] = is_in_trouble(w),
        [GANG_MARK_FATAL] = is_fatal(w),
        [GANG_MARK_REFUSED] = w->claim == CLAIM_REFUSED,
        [GANG_MARK_ASKS_GROUP] = waiting_asks_group(w),
    };
    uint32_t marks = 0;
    for (uint32_t mark = 0; mark < GANG_MARK_COUNT; mark++)
        marks |= (uint32_t)has[mark] << mark;
    return marks;
}

/* What gang_sums keeps, of one look at all workers. */
struct look {
    uint32_t having[GANG_MARK_COUNT], first[GANG_MARK_COUNT];
    int64_t ordered_ms;
};

static void look_at_all(const struct gang_input *input, struct look *look)
{
    for (uint32_t mark = 0; mark < GANG_MARK_COUNT; mark++)
        look->first[mark] = GANG_NOBODY;
    for (uint32_t i = 0; i < input->count; i++) {
        uint32_t marks = gang_marks(&input->workers[i]);
        int64_t ordered_ms = input->workers[i].ordered_ms;
        for (uint32_t mark = 0; mark < GANG_MARK_COUNT; mark++) {
            bool has = marks & UINT32_C(1) << mark;
            look->having[mark] += has;
            if (has && look->first[mark] == GANG_NOBODY)
                look->first[mark] = i;
        }
        if (ordered_ms && (!look->ordered_ms || ordered_ms < look->ordered_ms))
            look->ordered_ms = ordered_ms;
    }
}

/* Of the others only the number matters. */
static bool is_first_asked(enum gang_mark mark)
{
    return mark == GANG_MARK_PENDING || mark == GANG_MARK_LOST || mark == GANG_MARK_STRANDED ||
           mark == GANG_MARK_TROUBLE || mark == GANG_MARK_FATAL || mark == GANG_MARK_REFUSED;
}

static void look_at_sums(const struct gang_sums *sums, struct look *look)
{
    memcpy(look->having, sums->having, sizeof look->having);
    look->ordered_ms = sums->ordered_ms;
    for (uint32_t mark = 0; mark < GANG_MARK_COUNT; mark++)
        look->first[mark] = is_first_asked((enum gang_mark)mark)
                                ? gang_sums_first(sums, (enum gang_mark)mark)
                                : GANG_NOBODY;
}

void gang_facts(const struct gang_input *input, struct gang_facts *ret_facts)
{
    struct look look = {0};
    if (input->sums)
        look_at_sums(input->sums, &look);
    else
        look_at_all(input, &look);
    struct gang_facts facts = {
        .count = input->count,
        .allocated = look.having[GANG_MARK_ALLOCATED],
        .placed = look.having[GANG_MARK_PLACED],
        .up = look.having[GANG_MARK_UP],
        .holding = look.having[GANG_MARK_HOLDS],
        .present = look.having[GANG_MARK_PRESENT],
        .claimed = look.having[GANG_MARK_CLAIMED],
        .pending = look.having[GANG_MARK_PENDING],
        .queued = input->suspended || look.having[GANG_MARK_GATED] > 0,
        .node_comes = look.having[GANG_MARK_NODE_COMES] > 0,
        .image_comes = look.having[GANG_MARK_IMAGE_COMES] > 0,
        .releasing = look.having[GANG_MARK_RELEASES] > 0,
        .ordered_ms = look.ordered_ms,
        .vanished = look.having[GANG_MARK_VANISHED] > 0,
        .lost = look.first[GANG_MARK_LOST],
        .stranded = look.first[GANG_MARK_STRANDED],
        .blocked = look.first[GANG_MARK_PENDING],
        .trouble = look.first[GANG_MARK_TROUBLE],
        .fatal = GANG_NOBODY,
        .refused = GANG_NOBODY,
    };
    uint32_t fatal = look.first[GANG_MARK_FATAL];
    if (fatal != GANG_NOBODY)
        look_for_fatal(&input->workers[fatal], fatal, &facts);
    look_for_refusal(input, look.first[GANG_MARK_REFUSED], &facts);
    /* the scheduler does not look at a pod again because its class was deleted */
    if (input->no_class && facts.pending > 0)
        lacks_class(facts.blocked, input->no_class, strlen(input->no_class), &facts);
    *ret_facts = facts;
}
