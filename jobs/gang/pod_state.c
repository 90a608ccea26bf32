/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/pod_state.h"

#include <stdio.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_merge.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

#define GATE_SUSPENDED "drarun.dev/suspended"

/* ---- JSON ---- */

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && text[0] ? text : NULL;
}

static int64_t time_at(const json_t *object, const char *key)
{
    int64_t ms = 0;
    timestamp_parse(text_at(object, key), &ms);
    return ms;
}

static bool text_is(const char *text, const char *word)
{
    return text && word && strcmp(text, word) == 0;
}

struct object {
    const json_t *metadata, *spec, *status, *conditions;
};

static struct object object_of(const json_t *value)
{
    const json_t *status = json_object_get(value, "status");
    return (struct object){.metadata = json_object_get(value, "metadata"),
                           .spec = json_object_get(value, "spec"),
                           .status = status,
                           .conditions = json_object_get(status, "conditions")};
}

/* "True", "False", "Unknown", or NULL without the condition. */
static const char *condition_status(const struct object *pod, const char *type)
{
    return text_at(value_find(pod->conditions, "type", type), "status");
}

static int64_t condition_time(const struct object *pod, const char *type)
{
    return time_at(value_find(pod->conditions, "type", type), "lastTransitionTime");
}

/* ---- the claim ---- */

/* Why there is none yet: the controller that makes claims of templates says so by Events only. */
static void read_no_claim(bool wanted, struct pod_state *state)
{
    const struct news_item *failed = news_get(state->news, NEWS_CLAIM_FAILED);
    state->claim = wanted ? CLAIM_ABSENT : CLAIM_NONE;
    /* a claim of the user's own template: the scheduler does not look at the pod before it is made
     */
    bool foreign = !wanted && state->phase == POD_UNSCHEDULED && !state->reason;
    if (!failed || (!wanted && !foreign))
        return;
    bool template = strstr(failed->text, "resource claim template") ||
                    strstr(failed->text, "resourceclaimtemplate");
    state->claim =
        template && strstr(failed->text, "not found") ? CLAIM_NO_TEMPLATE : CLAIM_REFUSED;
    state->claim_message = failed->text;
    state->claim_since_ms = failed->from_ms;
}

static void read_claim(const json_t *value, bool wanted, struct pod_state *state)
{
    if (!value) {
        read_no_claim(wanted, state);
        return;
    }
    struct object claim = object_of(value);
    const json_t *allocation = json_object_get(claim.status, "allocation");
    int64_t allocated = time_at(allocation, "allocationTimestamp");
    state->claim_since_ms = time_at(claim.metadata, "creationTimestamp");
    state->claim = CLAIM_PENDING;
    if (json_is_object(allocation)) {
        state->claim = CLAIM_ALLOCATED;
        state->claim_since_ms = allocated ? allocated : state->claim_since_ms;
        state->devices = (uint32_t)json_array_size(
            json_object_get(json_object_get(allocation, "devices"), "results"));
    }
    if (text_at(claim.metadata, "deletionTimestamp")) {
        state->claim = CLAIM_DELETING;
        state->claim_since_ms = time_at(claim.metadata, "deletionTimestamp");
    }
}

/* ---- ends ---- */

/* word: it must be in the message; NULL: any message. The first row that fits counts. */
struct end_row {
    const char *reason, *word;
    enum pod_end end;
};

static const struct end_row disruptions[] = {
    {"PreemptionByScheduler", NULL, POD_END_PREEMPTED},
    {"DeletionByTaintManager", NULL, POD_END_TAINT},
    {"DeletionByDeviceTaintManager", NULL, POD_END_DEVICE_TAINT},
    {"DeletionByPodGC", NULL, POD_END_NODE_LOST},
    {"EvictionByEvictionAPI", NULL, POD_END_EVICTED},
    {"TerminationByKubelet", "node shutdown", POD_END_NODE_SHUTDOWN},
    {"TerminationByKubelet", "critical pod", POD_END_PREEMPTED},
    {"TerminationByKubelet", NULL, POD_END_EVICTED},
};

static const struct end_row pod_reasons[] = {
    {"Evicted", NULL, POD_END_EVICTED},
    {"Preempting", NULL, POD_END_PREEMPTED},
    {"Terminated", "node shutdown", POD_END_NODE_SHUTDOWN},
    {"NodeShutdown", NULL, POD_END_NODE_SHUTDOWN},
    {"NodeLost", NULL, POD_END_NODE_LOST},
    {"DeadlineExceeded", NULL, POD_END_DEADLINE},
};

static const struct end_row container_reasons[] = {
    {"OOMKilled", NULL, POD_END_OOM},
    {"StartError", NULL, POD_END_START},
    {"ContainerCannotRun", NULL, POD_END_START},
    {"ContainerStatusUnknown", NULL, POD_END_UNKNOWN},
};

#define END_OF(table, reason, message) end_of(table, ARRAY_LEN(table), reason, message)

static enum pod_end end_of(const struct end_row *table, size_t count, const char *reason,
                           const char *message)
{
    for (size_t i = 0; reason && i < count; i++)
        if (strcmp(reason, table[i].reason) == 0 &&
            (!table[i].word || (message && strstr(message, table[i].word))))
            return table[i].end;
    return POD_END_NONE;
}

static void take_reason(const json_t *object, struct pod_state *state)
{
    state->reason = text_at(object, "reason");
    state->message = text_at(object, "message");
}

/* A DisruptionTarget condition comes before the end, and stays after it. */
static bool read_disruption(const struct object *pod, struct pod_state *state)
{
    const json_t *condition = value_find(pod->conditions, "type", "DisruptionTarget");
    if (!text_is(text_at(condition, "status"), "True"))
        return false;
    state->disrupted = true;
    take_reason(condition, state);
    state->end = END_OF(disruptions, state->reason, state->message);
    if (state->end == POD_END_NONE)
        state->end = POD_END_EVICTED;
    /* the taint of a node that does not answer */
    if (state->end == POD_END_TAINT && state->not_ready)
        state->end = POD_END_NODE_LOST;
    return true;
}

static bool read_pod_reason(const struct object *pod, struct pod_state *state)
{
    const char *reason = text_at(pod->status, "reason");
    enum pod_end end = END_OF(pod_reasons, reason, text_at(pod->status, "message"));
    /* a pod that failed before any container: the kubelet did not admit it */
    bool refused = reason && text_is(text_at(pod->status, "phase"), "Failed") &&
                   !json_array_size(json_object_get(pod->status, "containerStatuses"));
    if (end == POD_END_NONE && !refused)
        return false;
    take_reason(pod->status, state);
    state->end = end != POD_END_NONE ? end : POD_END_REFUSED;
    return true;
}

static void read_container_end(const json_t *terminated, struct pod_state *state)
{
    state->exit_code = (int)json_integer_value(json_object_get(terminated, "exitCode"));
    state->started_ms = time_at(terminated, "startedAt");
    state->ended_ms = time_at(terminated, "finishedAt");
    if (state->end != POD_END_NONE)
        return;
    take_reason(terminated, state);
    state->end = END_OF(container_reasons, state->reason, state->message);
    if (state->end != POD_END_NONE)
        return;
    /* 137 and 143 are how a deleted pod's container ends */
    bool killed = state->exit_code == 137 || state->exit_code == 143;
    state->end = state->deleting && killed ? POD_END_DELETED : POD_END_EXIT;
}

/* ---- containers ---- */

struct container {
    const json_t *spec, *waiting, *running, *terminated;
    bool sidecar; /* an init container that is meant to go on */
    json_int_t restarts;
};

static struct container container_of(const json_t *spec, const json_t *statuses)
{
    const json_t *status =
        value_find(statuses, "name", json_string_value(json_object_get(spec, "name")));
    const json_t *state = json_object_get(status, "state");
    return (struct container){.spec = spec,
                              .waiting = json_object_get(state, "waiting"),
                              .running = json_object_get(state, "running"),
                              .terminated = json_object_get(state, "terminated"),
                              .sidecar = text_is(text_at(spec, "restartPolicy"), "Always"),
                              .restarts =
                                  json_integer_value(json_object_get(status, "restartCount"))};
}

static const struct waiting_row {
    const char *reason;
    enum pod_phase phase;
    bool failing;
} waiting_reasons[] = {
    {"ErrImagePull", POD_PULLING, false},
    {"ImagePullBackOff", POD_PULLING, false},
    {"RegistryUnavailable", POD_PULLING, false},
    {"InvalidImageName", POD_PULLING, true},
    {"ErrImageNeverPull", POD_PULLING, true},
    {"ImageInspectError", POD_PULLING, true},
    {"SignatureValidationFailed", POD_PULLING, true},
    {"CreateContainerConfigError", POD_CREATING, true},
    {"CreateContainerError", POD_CREATING, true},
    {"PreCreateHookError", POD_CREATING, true},
    {"PreStartHookError", POD_CREATING, true},
    {"PostStartHookError", POD_CREATING, true},
    {"RunContainerError", POD_CREATING, true},
    {POD_RESTARTS, POD_CREATING, true},
};

/* True when the container waits for more than its turn. */
static bool read_waiting(const struct container *container, struct pod_state *state)
{
    const char *reason = text_at(container->waiting, "reason");
    for (size_t i = 0; reason && i < ARRAY_LEN(waiting_reasons); i++) {
        const struct waiting_row *row = &waiting_reasons[i];
        if (strcmp(reason, row->reason) != 0)
            continue;
        take_reason(container->waiting, state);
        state->phase = row->phase;
        state->failing = row->failing && (!text_is(reason, POD_RESTARTS) ||
                                          container->restarts >= POD_RESTARTS_MAX);
        state->image_comes = row->phase == POD_PULLING && !row->failing;
        return true;
    }
    return false;
}

static bool has_label(const struct object *pod, const char *key)
{
    return json_object_get(json_object_get(pod->metadata, "labels"), key);
}

static bool is_worker(const struct object *pod)
{
    return has_label(pod, "drarun.dev/worker") ||
           has_label(pod, "batch.kubernetes.io/job-completion-index");
}

static bool runs_agent(const json_t *container)
{
    const json_t *command = json_object_get(container, "command");
    return text_is(json_string_value(json_array_get(command, 0)), POD_MERGE_AGENT_PROGRAM);
}

static const json_t *own_container(const struct object *pod)
{
    const json_t *list = json_object_get(pod->spec, "containers"), *container;
    const json_t *launcher =
        is_worker(pod) ? NULL : value_find(list, "name", OBJECT_LAUNCHER_CONTAINER);
    size_t i;
    json_array_foreach(list, i, container)
    {
        if (runs_agent(container))
            return container;
    }
    return launcher ? launcher : json_array_get(list, 0);
}

const json_t *pod_state_container(const json_t *pod)
{
    struct object object = object_of(pod);
    return own_container(&object);
}

static enum pod_image image_of(const struct object *pod, const char *container)
{
    if (text_is(container, POD_MERGE_AGENT_CONTAINER))
        return POD_IMAGE_AGENT;
    if (!is_worker(pod) && text_is(container, OBJECT_LAUNCHER_CONTAINER))
        return POD_IMAGE_LAUNCHER;
    return text_is(container, text_at(own_container(pod), "name")) ? POD_IMAGE_RANKS
                                                                   : POD_IMAGE_OTHER;
}

static bool mounts_agent_image(const struct object *pod, const struct container *container)
{
    const json_t *volumes = json_object_get(pod->spec, "volumes");
    const json_t *mounts = json_object_get(container->spec, "volumeMounts");
    return json_object_get(value_find(volumes, "name", POD_MERGE_AGENT_VOLUME), "image") &&
           value_find(mounts, "name", POD_MERGE_AGENT_VOLUME);
}

static void name_container(const struct object *pod, const struct container *container,
                           struct pod_state *state)
{
    state->container = text_at(container->spec, "name");
    state->image = text_at(container->spec, "image");
    state->image_of = image_of(pod, state->container);
    state->image_volume = mounts_agent_image(pod, container);
}

static bool names_image(const char *message, const char *image)
{
    size_t length = image ? strlen(image) : 0;
    for (const char *at = message; length && at && (at = strstr(at, image)); at += length)
        if (at > message && at[-1] == '"' && at[length] == '"')
            return true;
    return false;
}

/* The kubelet reports an image volume under the container's status; its message names the image. */
static void name_image_volume(const struct object *pod, const char *message,
                              struct pod_state *state)
{
    size_t i;
    json_t *volume;
    if (names_image(message, state->image))
        return;
    json_array_foreach(json_object_get(pod->spec, "volumes"), i, volume)
    {
        const char *image = text_at(json_object_get(volume, "image"), "reference");
        if (!names_image(message, image))
            continue;
        state->image = image;
        state->image_of = text_is(text_at(volume, "name"), POD_MERGE_AGENT_VOLUME)
                              ? POD_IMAGE_AGENT
                              : POD_IMAGE_OTHER;
        return;
    }
}

static void set_phase(struct pod_state *state, enum pod_phase phase, int64_t since_ms)
{
    state->phase = phase;
    state->since_ms = since_ms;
}

/* A container that is neither running nor ended: the pod's sandbox comes first, then its image. The
 * API does not tell a pull from a creation; an Event does, and creating takes no time to speak of.
 */
static void read_coming(const struct object *pod, const struct container *container,
                        struct pod_state *state)
{
    const struct news_item *pulling = news_pulling(state->news);
    bool sandbox = text_is(condition_status(pod, "PodReadyToStartContainers"), "True");
    name_container(pod, container, state);
    if (read_waiting(container, state)) {
        const struct news_item *failed = news_get(state->news, NEWS_PULL_FAILED);
        state->since_ms = state->phase == POD_PULLING && failed
                              ? failed->from_ms
                              : condition_time(pod, "PodReadyToStartContainers");
        if (state->phase == POD_PULLING)
            name_image_volume(pod, state->message, state);
    } else if (pulling) {
        name_image_volume(pod, pulling->text, state);
        set_phase(state, POD_PULLING, pulling->at_ms);
        state->message = pulling->text;
        state->image_comes = true;
    } else if (sandbox && news_get(state->news, NEWS_PULLED)) {
        set_phase(state, POD_CREATING, news_get(state->news, NEWS_PULLED)->at_ms);
    } else if (sandbox) {
        set_phase(state, POD_PULLING, condition_time(pod, "PodReadyToStartContainers"));
        state->image_comes = true;
    } else {
        set_phase(state, POD_BOUND, condition_time(pod, "PodScheduled"));
    }
}

static bool is_over(const struct object *pod)
{
    const char *phase = text_at(pod->status, "phase");
    return text_is(phase, "Failed") || text_is(phase, "Succeeded");
}

static struct container main_container(const struct object *pod)
{
    return container_of(own_container(pod), json_object_get(pod->status, "containerStatuses"));
}

/* False when the init containers have done their part: what one that goes on does beside our
 * container is no matter of ours. */
static bool read_init(const struct object *pod, struct pod_state *state)
{
    const json_t *statuses = json_object_get(pod->status, "initContainerStatuses");
    struct container own = main_container(pod);
    size_t i;
    json_t *spec;
    if (own.running || own.terminated)
        return false;
    json_array_foreach(json_object_get(pod->spec, "initContainers"), i, spec)
    {
        struct container c = container_of(spec, statuses);
        if (c.running && c.sidecar)
            continue;
        if (c.terminated && json_integer_value(json_object_get(c.terminated, "exitCode")) == 0)
            continue;
        name_container(pod, &c, state);
        if (c.terminated && c.sidecar && !is_over(pod)) { /* it is started again */
            set_phase(state, POD_INIT, time_at(c.terminated, "finishedAt"));
        } else if (c.terminated) {
            set_phase(state, POD_ENDED, time_at(c.terminated, "finishedAt"));
            read_container_end(c.terminated, state);
        } else if (c.running) {
            set_phase(state, POD_INIT, time_at(c.running, "startedAt"));
        } else {
            read_coming(pod, &c, state);
        }
        return true;
    }
    return false;
}

static void read_main(const struct object *pod, struct pod_state *state)
{
    struct container c = main_container(pod);
    name_container(pod, &c, state);
    if (c.terminated) {
        read_container_end(c.terminated, state);
        set_phase(state, POD_ENDED, state->ended_ms);
    } else if (c.running) {
        state->started_ms = time_at(c.running, "startedAt");
        set_phase(state, POD_RUNNING, state->started_ms);
    } else {
        read_coming(pod, &c, state);
    }
}

/* ---- the pod ---- */

static void read_gates(const struct object *pod, struct pod_state *state)
{
    size_t i;
    json_t *gate;
    json_array_foreach(state->gates, i, gate)
    {
        state->suspended |= text_is(text_at(gate, "name"), GATE_SUSPENDED);
    }
    take_reason(value_find(pod->conditions, "type", "PodScheduled"), state);
    set_phase(state, POD_GATED, time_at(pod->metadata, "creationTimestamp"));
}

static void read_unscheduled(const struct object *pod, struct pod_state *state)
{
    const json_t *scheduled = value_find(pod->conditions, "type", "PodScheduled");
    int64_t since = time_at(scheduled, "lastTransitionTime");
    take_reason(scheduled, state);
    state->unschedulable = text_is(state->reason, "Unschedulable");
    state->node_comes = news_scale_up(state->news) != NULL;
    state->ordered_ms = news_ordered_ms(state->news);
    set_phase(state, POD_UNSCHEDULED, since ? since : time_at(pod->metadata, "creationTimestamp"));
}

/* The node controller takes Ready away and leaves ContainersReady, which the kubelet writes. */
static bool node_silent(const struct object *pod)
{
    return text_is(text_at(pod->status, "reason"), "NodeLost") ||
           (text_is(condition_status(pod, "Ready"), "False") &&
            text_is(condition_status(pod, "ContainersReady"), "True") &&
            !json_object_get(pod->spec, "readinessGates"));
}

/* Neither the containers nor the pod may say when. */
static void end_pod(const struct object *pod, struct pod_state *state)
{
    if (state->phase != POD_ENDED) {
        int64_t at = condition_time(pod, "DisruptionTarget");
        at = at ? at : condition_time(pod, "ContainersReady");
        set_phase(state, POD_ENDED, at ? at : time_at(pod->status, "startTime"));
    }
    if (state->end == POD_END_NONE) {
        state->end = state->deleting ? POD_END_DELETED : POD_END_UNKNOWN;
        take_reason(pod->status, state);
    }
}

/* The timestamp is when the grace period ends. */
static int64_t deleting_since(const json_t *metadata)
{
    int64_t end = time_at(metadata, "deletionTimestamp");
    json_int_t grace = json_integer_value(json_object_get(metadata, "deletionGracePeriodSeconds"));
    return end && grace > 0 ? end - grace * 1000 : end;
}

static void read_pod(const json_t *value, struct pod_state *state)
{
    struct object pod = object_of(value);
    state->name = text_at(pod.metadata, "name");
    state->uid = text_at(pod.metadata, "uid");
    state->node = text_at(pod.spec, "nodeName");
    state->ip = text_at(pod.status, "podIP");
    state->group = text_at(json_object_get(pod.spec, "schedulingGroup"), "podGroupName");
    state->gates = json_object_get(pod.spec, "schedulingGates");
    state->deleting_since_ms = deleting_since(pod.metadata);
    state->deleting = state->deleting_since_ms != 0;
    state->not_ready = node_silent(&pod);
    if (!is_over(&pod) && !state->node) {
        if (json_array_size(state->gates) > 0)
            read_gates(&pod, state);
        else
            read_unscheduled(&pod, state);
        return;
    }
    bool told = read_disruption(&pod, state) || read_pod_reason(&pod, state);
    if (is_over(&pod) && text_at(pod.status, "reason"))
        take_reason(pod.status, state);
    const char *reason = state->reason, *message = state->message;
    if (!read_init(&pod, state))
        read_main(&pod, state);
    if (told) {
        state->reason = reason;
        state->message = message;
    }
    if (is_over(&pod))
        end_pod(&pod, state);
}

void pod_state_read(const json_t *pod, const json_t *claim, bool wants_claim,
                    const struct news *news, struct pod_state *ret_state)
{
    const char *uid = text_at(json_object_get(pod, "metadata"), "uid");
    struct pod_state state = {.phase = POD_ABSENT, .exit_code = -1, .news = news_about(news, uid)};
    if (json_is_object(pod))
        read_pod(pod, &state);
    read_claim(json_is_object(claim) ? claim : NULL, wants_claim, &state);
    *ret_state = state;
}

/* ---- what is kept of a pod ---- */

static void trim_container(json_t *container)
{
    static const char *const members[] = {"name",    "image",        "restartPolicy",
                                          "command", "volumeMounts", NULL};
    static const char mounts[] = "volumeMounts";
    value_keep(container, members);
    value_cut_at(container, "command", 1);
    if (value_find(json_object_get(container, mounts), "name", POD_MERGE_AGENT_VOLUME))
        json_object_set_new(container, mounts,
                            json_pack("[{s:s}]", "name", POD_MERGE_AGENT_VOLUME));
    else
        json_object_del(container, mounts);
}

void pod_state_trim(json_t *pod)
{
    static const char *const members[] = {
        "nodeName",   "schedulingGates", "schedulingGroup", "readinessGates",
        "containers", "initContainers",  "volumes",         NULL};
    static const char *const of_volume[] = {"name", "image", NULL};
    json_t *spec = json_object_get(pod, "spec"), *each;
    size_t i;
    value_keep(spec, members);
    json_array_foreach(json_object_get(spec, "containers"), i, each) trim_container(each);
    json_array_foreach(json_object_get(spec, "initContainers"), i, each) trim_container(each);
    json_array_foreach(json_object_get(spec, "volumes"), i, each) value_keep(each, of_volume);
}

/* ---- questions ---- */

void pod_state_image(const struct pod_state *state, char *out, size_t size)
{
    static const char *const owners[] = {[POD_IMAGE_RANKS] = "the ranks",
                                         [POD_IMAGE_AGENT] = "the agent",
                                         [POD_IMAGE_LAUNCHER] = "the launcher"};
    const char *image = state->image ? state->image : "?";
    bool named = (size_t)state->image_of < ARRAY_LEN(owners) && owners[state->image_of];
    snprintf(out, size, "image %s of %s%s", image, named ? "" : "container ",
             named              ? owners[state->image_of]
             : state->container ? state->container
                                : "?");
}

bool pod_state_holds(const struct pod_state *state)
{
    return state->claim == CLAIM_ALLOCATED || state->devices > 0 ||
           (state->phase >= POD_BOUND && state->phase != POD_ENDED);
}

bool pod_state_placed(const struct pod_state *state)
{
    bool claimed = state->claim == CLAIM_NONE || state->claim == CLAIM_ALLOCATED;
    return claimed && state->phase >= POD_BOUND && state->phase != POD_ENDED && !state->deleting;
}

static const char *const pod_phase_names[] = {
    [POD_ABSENT] = "absent", [POD_GATED] = "gated",     [POD_UNSCHEDULED] = "unscheduled",
    [POD_BOUND] = "bound",   [POD_PULLING] = "pulling", [POD_CREATING] = "creating",
    [POD_INIT] = "init",     [POD_RUNNING] = "running", [POD_ENDED] = "ended",
};

static const char *const pod_end_names[] = {
    [POD_END_NONE] = "none",
    [POD_END_EXIT] = "exit",
    [POD_END_OOM] = "oom",
    [POD_END_START] = "start",
    [POD_END_EVICTED] = "evicted",
    [POD_END_PREEMPTED] = "preempted",
    [POD_END_TAINT] = "taint",
    [POD_END_DEVICE_TAINT] = "device-taint",
    [POD_END_NODE_LOST] = "node-lost",
    [POD_END_NODE_SHUTDOWN] = "node-shutdown",
    [POD_END_DEADLINE] = "deadline",
    [POD_END_REFUSED] = "refused",
    [POD_END_DELETED] = "deleted",
    [POD_END_UNKNOWN] = "unknown",
};

static const char *const claim_phase_names[] = {
    [CLAIM_NONE] = "none",         [CLAIM_ABSENT] = "absent",   [CLAIM_NO_TEMPLATE] = "no-template",
    [CLAIM_REFUSED] = "refused",   [CLAIM_PENDING] = "pending", [CLAIM_ALLOCATED] = "allocated",
    [CLAIM_DELETING] = "deleting",
};

const char *pod_phase_name(enum pod_phase phase)
{
    return (size_t)phase < ARRAY_LEN(pod_phase_names) && pod_phase_names[phase]
               ? pod_phase_names[phase]
               : "unknown";
}

const char *pod_end_name(enum pod_end end)
{
    return (size_t)end < ARRAY_LEN(pod_end_names) ? pod_end_names[end] : "unknown";
}

const char *claim_phase_name(enum claim_phase phase)
{
    return (size_t)phase < ARRAY_LEN(claim_phase_names) && claim_phase_names[phase]
               ? claim_phase_names[phase]
               : "unknown";
}

const char *pod_state_lost(const struct pod_state *state)
{
    if (state->phase == POD_ABSENT)
        return "the pod was deleted";
    if (state->phase == POD_ENDED)
        return state->message ? state->message : pod_end_name(state->end);
    if (state->not_ready)
        return "the node stopped answering";
    return state->deleting ? "the pod is being deleted" : NULL;
}
