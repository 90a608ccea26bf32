/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/launcher_silence.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/pod_state.h"
#include "launcher/cluster/client/lease_life.h"
#include "lib/base/cleanup.h"
#include "lib/kube/object.h"

void launcher_silence_done(struct launcher_silence *silence)
{
    free(silence->holder);
    free(silence->node);
    *silence = (struct launcher_silence){0};
}

bool launcher_silence_of_lease(const json_t *lease, int64_t now_ms,
                               struct launcher_silence *ret_silence)
{
    const json_t *spec = json_object_get(lease, "spec");
    const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
    json_int_t life_s = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    int64_t sign = lease_renewed_ms(lease);
    *ret_silence = (struct launcher_silence){0};
    if (!holder || !holder[0] || !sign || life_s <= 0)
        return false;
    ret_silence->renewed_ms = sign;
    ret_silence->silent_ms = now_ms - sign;
    ret_silence->life_ms = life_s * 1000;
    ret_silence->holder = strdup(holder);
    return ret_silence->holder && ret_silence->silent_ms >= LAUNCHER_SILENT_MS;
}

bool launcher_silence_has_pod(const struct launcher_silence *silence)
{
    return !strchr(silence->holder, '_'); /* HOST_PID */
}

bool launcher_silence_has_lost_node(const json_t *pod)
{
    struct pod_state state;
    pod_state_read(pod, NULL, false, NULL, &state);
    return state.not_ready || (state.disrupted && state.end == POD_END_NODE_LOST);
}

void launcher_silence_add_pod(struct launcher_silence *silence, const json_t *pod)
{
    const char *node = json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));
    free(TAKE_PTR(silence->node));
    silence->node = node ? strdup(node) : NULL;
    silence->lost = launcher_silence_has_lost_node(pod);
    silence->deleting = kube_is_terminating(pod);
}

void launcher_silence_text(const struct launcher_silence *silence, struct buf *out)
{
    buf_printf(out, "launcher %s%s%s has not renewed its Lease for %" PRId64 " s", silence->holder,
               silence->node ? " on " : "", silence->node ? silence->node : "",
               silence->silent_ms / 1000);
    if (silence->lost)
        buf_add_str(out, ": its node does not answer");
}

json_t *launcher_silence_json(const struct launcher_silence *silence)
{
    struct buf text = BUF_INIT;
    launcher_silence_text(silence, &text);
    json_t *json =
        text.failed
            ? NULL
            : json_pack("{s:s, s:s*, s:I, s:s}", "launcher", silence->holder, "node", silence->node,
                        "seconds", (json_int_t)(silence->silent_ms / 1000), "text", text.data);
    buf_done(&text);
    return json;
}

bool launcher_silence_look_at(struct cluster *cluster, const json_t *lease,
                              struct launcher_silence *ret_silence)
{
    int64_t now = kube_client_now(cluster->client);
    CLEANUP(json_decrefp) json_t *pod = NULL;
    struct drarun_error err = {0};
    if (!now || !launcher_silence_of_lease(lease, now, ret_silence)) {
        launcher_silence_done(ret_silence);
        return false;
    }
    const struct kube_target target = {
        .resource = &kube_pods, .namespace_ = kube_namespace(lease), .name = ret_silence->holder};
    if (launcher_silence_has_pod(ret_silence) && cluster_get(cluster, &target, &pod, &err) == 0)
        launcher_silence_add_pod(ret_silence, pod);
    return true;
}

bool launcher_silence_look(struct cluster *cluster, const char *job, const char *namespace,
                           struct launcher_silence *ret_silence)
{
    const struct kube_target target = {
        .resource = &kube_leases, .namespace_ = namespace, .name = job};
    CLEANUP(json_decrefp) json_t *lease = NULL;
    struct drarun_error err = {0};
    *ret_silence = (struct launcher_silence){0};
    return cluster_get(cluster, &target, &lease, &err) == 0 &&
           launcher_silence_look_at(cluster, lease, ret_silence);
}
