/* SPDX-License-Identifier: Apache-2.0 */
/* What one worker waits for, and what the whole job waits for. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jobs/gang/waiting_private.h"
#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_merge.h"
#include "lib/base/cleanup.h"
#include "lib/base/plain.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

#define QUEUE_WAIT "queue %s has not admitted it"
#define MESSAGE_MAX 300 /* bytes of a foreign message; a runtime's may be kilobytes */

/* What wraps the cause in the messages of the kubelet, the controllers and the runtime. */
static const char *const wrappers[] = {
    "Failed to prepare dynamic resources: ",
    "prepare dynamic resources: ",
    "NodePrepareResources: ",
    "Error: ",
    "rpc error: code = Unknown desc = ",
    "rpc error: code = NotFound desc = ",
    "Error creating: ",
    "PodResourceClaim devices: ",
    "Failed to create pod sandbox: ",
    "pod didn't trigger scale-up: ",
    "Failed to schedule pod, ",
};

static const char *unwrapped(const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
        if (strncmp(message, wrappers[i], strlen(wrappers[i])) == 0)
            return unwrapped(message + strlen(wrappers[i]));
    return message;
}

/* One line of it, without what wraps it, cut where it is too long (never inside a character). */
static void add_message(const char *message, struct buf *out)
{
    const char *text = unwrapped(message ? message : "");
    size_t length = strcspn(text, "\n");
    buf_add(out, text, utf8_cut(text, length, MESSAGE_MAX));
    buf_add_str(out, length > MESSAGE_MAX ? "..." : "");
}

__attribute__((format(printf, 4, 5))) static void say(struct worker_wait *wait, bool stuck,
                                                      const char *message, const char *format, ...)
{
    char head[256];
    va_list args;
    va_start(args, format);
    vsnprintf(head, sizeof head, format, args);
    va_end(args);
    wait->stuck = stuck;
    if (wait->text.len == 0)
        wait->same = strcspn(head, "("); /* a reason stands in parentheses */
    buf_add_str(&wait->text, head);
    if (message && message[0]) {
        buf_add_str(&wait->text, ": ");
        add_message(message, &wait->text);
    }
}

/* Words that are not cut. */
static void add_whole(struct worker_wait *wait, bool stuck, const char *words)
{
    wait->stuck = stuck;
    buf_add_str(&wait->text, words);
}

/* ---- one worker ---- */

static void wait_for_pod(const struct waiting_input *input, const struct pod_state *w,
                         struct worker_wait *wait)
{
    const struct news_item *refused = news_get(input->job_news, NEWS_CREATE_FAILED);
    if (w->claim == CLAIM_NO_TEMPLATE || w->claim == CLAIM_REFUSED)
        say(wait, true, w->claim_message, "its claim cannot be made");
    else if (refused)
        say(wait, true, refused->text, "its pod is refused");
    else
        say(wait, false, NULL, "its pod does not exist yet");
    if (!wait->since_ms && refused)
        wait->since_ms = refused->from_ms;
}

/* The queue that holds the launcher's Job, and with it the workers; NULL: none does. */
static const char *queue_of_launcher(const struct waiting_input *input)
{
    return object_is_suspended(input->launcher_job) ? object_queue(input->launcher_job) : NULL;
}

static void wait_for_gate(const struct waiting_input *input, const struct pod_state *w,
                          struct worker_wait *wait)
{
    const char *queue = queue_of_launcher(input);
    if (w->suspended && queue) {
        say(wait, false, NULL, QUEUE_WAIT, queue);
        return;
    }
    if (w->suspended) {
        say(wait, false, NULL, "the job is suspended (spec.suspend)");
        return;
    }
    const char *gate = json_string_value(json_object_get(json_array_get(w->gates, 0), "name"));
    say(wait, false, NULL, "its scheduling gate %s is closed", gate ? gate : "?");
}

static void wait_for_node(const struct waiting_input *input, uint32_t worker, const char *missing,
                          struct worker_wait *wait)
{
    const struct pod_state *w = &input->workers[worker];
    bool stuck = false;
    cleanup_free char *words = scheduler_words(w->message);
    cleanup_free char *of_group =
        group_words(input->workers, input->count, worker, input->group, &stuck);
    cleanup_free char *spread =
        input->spread ? spread_words(input->workers, input->count, w->message) : NULL;
    const struct news_item *scale_up = news_scale_up(w->news);
    const struct news_item *no_scale_up = news_get(w->news, NEWS_NO_SCALE_UP);
    const struct news_item *no_claim = news_get(w->news, NEWS_CLAIM_FAILED);
    bool claimed = w->claim == CLAIM_NONE || w->claim == CLAIM_ALLOCATED;
    if (w->claim == CLAIM_NO_TEMPLATE || w->claim == CLAIM_REFUSED)
        say(wait, true, w->claim_message, "its claim cannot be made");
    else if (w->claim == CLAIM_ABSENT)
        say(wait, false, NULL, "its claim does not exist yet");
    else if (w->claim == CLAIM_DELETING)
        say(wait, false, NULL, "its claim is being deleted");
    else if (scale_up)
        say(wait, false, scale_up->text, "a node is being added");
    else if (w->unschedulable && missing && !claimed)
        buf_add_str(&wait->text, missing);
    else if (w->unschedulable && spread)
        say(wait, false, words, "%s", spread);
    else if (of_group && (w->reason || !no_claim))
        add_whole(wait, stuck, of_group);
    else if (w->reason)
        say(wait, false, words, "%s", w->unschedulable ? "no node has room" : w->reason);
    else if (no_claim) /* one that is not ours: of the user, or a channel of a compute domain */
        say(wait, false, no_claim->text, "its claim cannot be made");
    else
        say(wait, false, NULL, "the scheduler has not tried it yet");
    if (w->unschedulable && !scale_up && no_scale_up)
        say(wait, false, no_scale_up->text, "; the autoscaler adds no node");
}

/* ---- what the kubelet cannot do for a pod ---- */

/* word: it is in the kubelet's message; NULL: whatever that says. The first row that fits counts.
 * Messages: pkg/volume, pkg/kubelet/cm/dra, pkg/kubelet/kuberuntime of kubernetes 1.36. */
static const struct {
    enum news_kind kind;
    const char *word, *advice;
} advices[] = {
    {NEWS_PREPARE_FAILED, "is not registered",
     "see whether the driver's pod runs on this node and what its log says"},
    {NEWS_PREPARE_FAILED, NULL, "the log of the driver's pod on this node says more"},
    {NEWS_MOUNT_FAILED, "failed to sync", NULL}, /* the kubelet could not ask the API server */
    {NEWS_MOUNT_FAILED, "volume \"" POD_MERGE_AGENT_VOLUME "\" err=no volume plugin matched",
     "its kubelet has no image volumes, which are on by default from Kubernetes 1.35: set "
     "DRARUN_AGENT=copy"},
    {NEWS_MOUNT_FAILED, ": secret ", "create the Secret, or correct the volume in spec.template"},
    {NEWS_MOUNT_FAILED, ": configmap ",
     "create the ConfigMap, or correct the volume in spec.template"},
    {NEWS_MOUNT_FAILED, "hostPath type check failed",
     "make it on this node, correct the volume in spec.template, or let its type be "
     "DirectoryOrCreate"},
    {NEWS_MOUNT_FAILED, NULL,
     "correct the volume in spec.template, or what serves it to this node"},
    {NEWS_SANDBOX_FAILED, "no runtime for",
     "set up that runtime on this node, or correct runtimeClassName in spec.template"},
    {NEWS_SANDBOX_FAILED, NULL,
     "the log of this node's network plugin or container runtime says more"},
};

static const char *advice_for(enum news_kind kind, const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(advices); i++)
        if (advices[i].kind == kind && (!advices[i].word || strstr(message, advices[i].word)))
            return advices[i].advice;
    return NULL;
}

static bool is_later(const struct news_item *item, const struct news_item *than)
{
    if (item->at_ms != than->at_ms)
        return item->at_ms > than->at_ms;
    return item->order > than->order;
}

/* The kubelet does them one after the other, so that the last complaint is the one that holds. */
static const struct news_item *last_complaint(const struct news *news, enum news_kind *ret_kind)
{
    static const enum news_kind kinds[] = {NEWS_PREPARE_FAILED, NEWS_MOUNT_FAILED, NEWS_MOUNT_LATE,
                                           NEWS_SANDBOX_FAILED};
    const struct news_item *last = NULL;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct news_item *item = news_get(news, kinds[i]);
        if (!item || (last && !is_later(item, last)))
            continue;
        last = item;
        *ret_kind = kinds[i];
    }
    return last;
}

/* A kubelet that has not seen the pod's ConfigMaps and Secrets yet fails once and tries again after
 * half a second (pkg/util/goroutinemap/exponentialbackoff of kubernetes 1.36). */
static bool may_pass(const struct news_item *item, enum news_kind kind)
{
    return kind == NEWS_MOUNT_FAILED && item->same < 2 &&
           strncmp(item->text, "MountVolume.", strlen("MountVolume.")) == 0;
}

/* That mounting takes long does not say why; the complaint before it does. */
static const struct news_item *complaint(const struct news *news, enum news_kind *ret_kind)
{
    const struct news_item *last = last_complaint(news, ret_kind);
    if (!last || may_pass(last, *ret_kind))
        return NULL;
    if (*ret_kind != NEWS_MOUNT_LATE)
        return last;
    const struct news_item *mount = news_get(news, NEWS_MOUNT_FAILED);
    *ret_kind = NEWS_MOUNT_FAILED;
    return mount ? mount : last;
}

bool waiting_for_kubelet(const struct pod_state *worker)
{
    enum news_kind kind;
    return worker->phase == POD_BOUND && complaint(worker->news, &kind);
}

/* A driver that is gone is told by the kubelet's message alone. */
static void wait_for_sandbox(const struct pod_state *w, struct worker_wait *wait)
{
    enum news_kind kind = NEWS_NONE;
    const struct news_item *item = complaint(w->news, &kind);
    if (!item) {
        say(wait, false, NULL, "the kubelet prepares its devices, volumes and sandbox");
        return;
    }
    say(wait, false, item->text, "%s",
        kind == NEWS_PREPARE_FAILED ? "its devices cannot be prepared"
        : kind == NEWS_MOUNT_FAILED ? "a volume cannot be mounted"
                                    : "its sandbox cannot be made");
    wait->pod = w->name;
    wait->advice = advice_for(kind, item->text);
}

void worker_wait_text(const char *sentence, const char *pod, uint32_t count, const char *advice,
                      struct buf *out)
{
    buf_add_str(out, sentence);
    if (pod)
        buf_printf(out, " (pod %s", pod);
    if (pod && count > 1)
        buf_printf(out, " and %u more", count - 1);
    buf_add_str(out, pod ? ")" : "");
    if (advice)
        buf_printf(out, "; %s", advice);
}

/* A launcher's pod has its account's Secrets, unless the spec names others. */
static const char *image_advice(enum pod_image of)
{
    switch (of) {
    case POD_IMAGE_LAUNCHER:
        return "name one that the nodes can pull, by --image or DRARUN_IMAGE, or the Secret of its "
               "registry, by drarun install --image-pull-secret";
    case POD_IMAGE_AGENT:
        return "name one that the nodes can pull, by --image or DRARUN_IMAGE, or the Secret of its "
               "registry, by imagePullSecrets in the spec";
    default:
        return "correct the image in the spec, or give the pods imagePullSecrets";
    }
}

static void wait_for_image(const struct pod_state *w, struct worker_wait *wait)
{
    char image[240];
    const struct news_item *failed = news_get(w->news, NEWS_PULL_FAILED);
    pod_state_image(w, image, sizeof image);
    if (!w->reason) {
        say(wait, false, NULL, "%s is being pulled", image);
        return;
    }
    say(wait, w->failing,
        failed && strcmp(w->reason, "ImagePullBackOff") == 0 ? failed->text : w->message,
        "%s cannot be pulled (%s)", image, w->reason);
    wait->pod = w->name;
    wait->advice = image_advice(w->image_of);
}

/* A runtime that has none fails in its own words: containerd 2.0 with mkdir "". */
static bool may_lack_image_volumes(const struct pod_state *w)
{
    return w->image_volume && w->reason && strcmp(w->reason, "CreateContainerError") == 0 &&
           !(w->message && strstr(w->message, "CDI"));
}

bool container_is_restarted(const struct pod_state *w)
{
    return w->reason && strcmp(w->reason, POD_RESTARTS) == 0;
}

const char *container_deed(const struct pod_state *worker)
{
    return container_is_restarted(worker) ? "ends again and again" : "cannot be made";
}

/* "container has runAsNonRoot and image will run as root", or "image has non-numeric user (nobody)"
 * (pkg/kubelet/kuberuntime/security_context.go). */
const char *container_advice(const struct pod_state *worker)
{
    const char *message = worker->message;
    if (container_is_restarted(worker))
        return "its log says why: kubectl logs POD -c CONTAINER --previous";
    if (may_lack_image_volumes(worker))
        return "if the node's container runtime has no image volumes, as containerd before 2.1, "
               "set DRARUN_AGENT=copy";
    if (!message || !strstr(message, "container has runAsNonRoot and image "))
        return NULL;
    return strstr(message, "container: " POD_MERGE_AGENT_CONTAINER ")")
               ? "the agent's image must name a user by number who is not root, as scripts/image "
                 "does: name another one, by --image or DRARUN_IMAGE"
               : "give it a user who is not root in its securityContext, as runAsUser: 1000";
}

static void wait_for_container(const struct pod_state *w, struct worker_wait *wait)
{
    const char *container = w->container ? w->container : "?";
    wait->advice = w->reason ? container_advice(w) : NULL;
    wait->pod = container_is_restarted(w) ? w->name : NULL;
    if (w->reason)
        say(wait, w->failing, w->message, "container %s %s (%s)", container, container_deed(w),
            w->reason);
    else
        say(wait, false, NULL, "container %s is being made", container);
}

static void wait_for_agent(const struct waiting_input *input, uint32_t worker,
                           struct worker_wait *wait)
{
    const struct pod_state *w = &input->workers[worker];
    if (w->not_ready)
        say(wait, false, NULL, "its node does not answer");
    else if (input->inspected && !input->inspected[worker])
        say(wait, false, NULL, "its agent has not reported yet");
    if (!w->not_ready)
        wait->node = NULL; /* how far an agent is has nothing to do with where */
}

void worker_wait(const struct waiting_input *input, uint32_t worker, const char *missing,
                 struct worker_wait *ret_wait)
{
    const struct pod_state *w = &input->workers[worker];
    struct worker_wait wait = {.text = BUF_INIT, .node = w->node, .since_ms = w->since_ms};
    if (w->deleting && w->phase != POD_ENDED) {
        wait.since_ms = w->deleting_since_ms;
        say(&wait, false, w->disrupted ? w->message : NULL, "its pod is being deleted");
        *ret_wait = wait;
        return;
    }
    switch (w->phase) {
    case POD_ABSENT:
        wait_for_pod(input, w, &wait);
        break;
    case POD_GATED:
        wait_for_gate(input, w, &wait);
        break;
    case POD_UNSCHEDULED:
        wait_for_node(input, worker, missing, &wait);
        break;
    case POD_BOUND:
        wait_for_sandbox(w, &wait);
        break;
    case POD_PULLING:
        wait_for_image(w, &wait);
        break;
    case POD_CREATING:
        wait_for_container(w, &wait);
        break;
    case POD_INIT:
        say(&wait, false, NULL, "init container %s runs", w->container ? w->container : "?");
        break;
    case POD_RUNNING:
        wait_for_agent(input, worker, &wait);
        break;
    case POD_ENDED:
        say(&wait, true, w->message, "its pod has ended (%s)",
            w->reason ? w->reason : pod_end_name(w->end));
        break;
    }
    *ret_wait = wait;
}

/* ---- the job ---- */

static const json_t *condition_of(const json_t *object, const char *type)
{
    const json_t *status = json_object_get(object, "status");
    return value_find(json_object_get(status, "conditions"), "type", type);
}

/* Kueue says on its Workload why it does not admit: QuotaReserved, else Evicted or Inactive. */
static bool queue_wait(const struct waiting_input *input, struct worker_wait *wait)
{
    const char *queue = object_queue(input->worker_job), *others = queue_of_launcher(input);
    const json_t *reserved = condition_of(input->workload, "QuotaReserved");
    const char *status = value_text(reserved, "status");
    const struct news_item *pending = news_get(input->job_news, NEWS_QUEUED);
    if (!queue && others)
        say(wait, false, NULL, QUEUE_WAIT, others);
    if (!queue)
        return others != NULL;
    const json_t *evicted = condition_of(input->workload, "Evicted");
    const char *message = status && strcmp(status, "True") != 0 ? value_text(reserved, "message")
                          : pending                             ? pending->text
                                                                : NULL;
    if (value_text(evicted, "status") && strcmp(value_text(evicted, "status"), "True") == 0 &&
        !message)
        message = value_text(evicted, "message");
    timestamp_parse(value_text(reserved, "lastTransitionTime"), &wait->since_ms);
    say(wait, false, message, QUEUE_WAIT, queue);
    return true;
}

static bool pause_wait(const struct waiting_input *input, struct worker_wait *wait)
{
    const struct gang_decision *d = input->decision;
    if (!d || d->phase != GANG_RELEASING)
        return false;
    char pause[40];
    int64_t left =
        d->next_ms > input->now_ms && d->clock == GANG_CLOCK_NONE ? d->next_ms - input->now_ms : 0;
    duration_format(left, pause, sizeof pause);
    if (input->refused && left > 0)
        say(wait, true, input->refused, "the workers cannot be created, next try in %s", pause);
    else if (input->refused)
        say(wait, true, input->refused, "the workers cannot be created");
    else if (left > 0)
        say(wait, false, NULL,
            "not all workers could be placed: their devices were released, next try in %s", pause);
    else
        say(wait, false, NULL, "not all workers could be placed: their devices are being released");
    return true;
}

/* What else is known is old then. */
static bool watch_wait(const struct waiting_input *input, struct worker_wait *wait)
{
    if (input->trouble)
        say(wait, false, NULL, "the cluster cannot be watched: %s", input->trouble);
    return input->trouble != NULL;
}

bool job_wait(const struct waiting_input *input, struct worker_wait *ret_wait)
{
    struct worker_wait wait = {.text = BUF_INIT};
    bool waits = watch_wait(input, &wait) || pause_wait(input, &wait);
    if (!waits && object_is_suspended(input->worker_job)) {
        timestamp_parse(
            value_text(condition_of(input->worker_job, "Suspended"), "lastTransitionTime"),
            &wait.since_ms);
        waits = true;
        if (!queue_wait(input, &wait))
            say(&wait, false, NULL, "the job is suspended");
    }
    *ret_wait = wait;
    return waits;
}
