/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow_pod.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/pod_state.h"
#include "lib/base/log.h"

void follow_pod_done(struct follow_pod *chosen)
{
    free(chosen->name);
}

static bool is_launcher(const json_t *pod)
{
    const json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    return json_object_get(labels, "drarun.dev/job") &&
           !json_object_get(labels, "drarun.dev/worker") &&
           !json_object_get(labels, "drarun.dev/workers");
}

static bool is_of_job(const struct follow_pod *chosen, const json_t *pod)
{
    return !chosen->uid || kube_is_owned_by(pod, chosen->uid);
}

static const json_t *launcher_status(const json_t *pod)
{
    const json_t *list = json_object_get(json_object_get(pod, "status"), "containerStatuses");
    return json_object_get(json_array_get(list, 0), "state");
}

static bool has_begun(const json_t *pod)
{
    const json_t *state = launcher_status(pod);
    return json_object_get(state, "running") || json_object_get(state, "terminated");
}

static bool is_alive(const json_t *pod)
{
    return pod && json_object_get(launcher_status(pod), "running") &&
           !json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp");
}

static const json_t *find_pod(const struct follow_pod *chosen, const char *name)
{
    return name ? kube_watch_find(chosen->pods, chosen->namespace, name) : NULL;
}

/* NULL: nobody. */
static const char *who_leads(const struct follow_pod *chosen, const struct follow_leader *leader)
{
    bool leads = leader->pod && (leader->ended || is_alive(find_pod(chosen, leader->pod)));
    return leads ? leader->pod : NULL;
}

static bool is_another(const struct follow_pod *chosen, const struct follow_leader *leader,
                       const json_t *pod)
{
    const char *lead = who_leads(chosen, leader);
    if (lead)
        return strcmp(kube_name(pod), lead) != 0;
    return chosen->name && strcmp(kube_name(pod), chosen->name) != 0 &&
           is_alive(find_pod(chosen, chosen->name));
}

static void tell_trouble(struct follow_pod *chosen, const json_t *pod)
{
    struct pod_state state;
    pod_state_read(pod, NULL, false, NULL, &state);
    if (!state.failing && !state.unschedulable)
        return;
    if (!chosen->told)
        log_note("the launcher's pod %s waits: %s: %s", kube_name(pod),
                 state.reason ? state.reason : "?", state.message ? state.message : "");
    chosen->told = true;
}

bool follow_pod_see(struct follow_pod *chosen, const struct follow_leader *leader,
                    const json_t *pod)
{
    if (!is_launcher(pod) || !is_of_job(chosen, pod) || is_another(chosen, leader, pod))
        return false;
    chosen->coming = !has_begun(pod);
    if (chosen->coming) {
        tell_trouble(chosen, pod);
        return false;
    }
    if (chosen->name && strcmp(chosen->name, kube_name(pod)) == 0)
        return false;
    free(chosen->name);
    chosen->name = strdup(kube_name(pod));
    return chosen->name != NULL;
}

struct looking {
    struct follow_pod *chosen;
    const struct follow_leader *leader;
    bool found;
};

static void look_if_alive(const json_t *pod, void *arg)
{
    struct looking *looking = arg;
    if (is_alive(pod))
        looking->found |= follow_pod_see(looking->chosen, looking->leader, pod);
}

bool follow_pod_look(struct follow_pod *chosen, const struct follow_leader *leader)
{
    struct looking looking = {chosen, leader, false};
    const char *lead = who_leads(chosen, leader);
    const json_t *pod = find_pod(chosen, lead);
    if (pod)
        return follow_pod_see(chosen, leader, pod);
    if (!lead && chosen->name && !is_alive(find_pod(chosen, chosen->name)))
        kube_watch_each(chosen->pods, look_if_alive, &looking);
    return looking.found;
}
