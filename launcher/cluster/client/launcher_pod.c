/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/launcher_pod.h"

#include <string.h>

#include "jobs/manifests/objects.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

#define SUFFIX_LENGTH 5 /* k8s.io/apiserver/pkg/storage/names */

bool launcher_pod_is_one(const json_t *pod)
{
    const json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    return json_object_get(labels, "drarun.dev/job") &&
           !json_object_get(labels, "drarun.dev/worker") &&
           !json_object_get(labels, "drarun.dev/workers");
}

bool launcher_pod_is_called(const char *job, const char *name)
{
    size_t length = strlen(job);
    return strncmp(name, job, length) == 0 && name[length] == '-' &&
           strlen(name + length + 1) == SUFFIX_LENGTH && !strchr(name + length + 1, '-');
}

const json_t *launcher_pod_state(const json_t *pod)
{
    const json_t *list = json_object_get(json_object_get(pod, "status"), "containerStatuses");
    return json_object_get(value_find(list, "name", OBJECT_LAUNCHER_CONTAINER), "state");
}

bool launcher_pod_has_begun(const json_t *pod)
{
    const json_t *state = launcher_pod_state(pod);
    return json_object_get(state, "running") || json_object_get(state, "terminated");
}

struct looking {
    const char *uid;
    const json_t *begun, *coming;
};

static void look(const json_t *pod, void *arg)
{
    struct looking *l = arg;
    if ((l->uid && !kube_is_owned_by(pod, l->uid)) || !launcher_pod_is_one(pod))
        return;
    if (launcher_pod_has_begun(pod))
        l->begun = pod;
    else if (!kube_is_terminating(pod))
        l->coming = pod;
}

const json_t *launcher_pod_find(const struct kube_watch *pods, const char *uid)
{
    struct looking l = {.uid = uid};
    kube_watch_each(pods, look, &l);
    return l.begun ? l.begun : l.coming;
}

const json_t *launcher_pod_coming(const struct kube_watch *pods, const char *uid)
{
    struct looking l = {.uid = uid};
    kube_watch_each(pods, look, &l);
    return l.coming;
}

static const json_t *end_of(const json_t *pod)
{
    return json_object_get(launcher_pod_state(pod), "terminated");
}

static int64_t ended_at(const json_t *pod)
{
    int64_t at = 0;
    return timestamp_parse(value_text(end_of(pod), "finishedAt"), &at) ? at : 0;
}

static const json_t *last_ended(const json_t *list, const char *uid)
{
    const json_t *pod, *last = NULL;
    size_t i;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        bool ended = launcher_pod_is_one(pod) && kube_is_owned_by(pod, uid) && end_of(pod);
        if (ended && (!last || ended_at(pod) >= ended_at(last)))
            last = pod;
    }
    return last;
}

void launcher_pod_add_end(const json_t *list, const char *uid, struct buf *out)
{
    const json_t *pod = last_ended(list, uid), *end = end_of(pod);
    const char *reason = value_text(end, "reason"), *message = value_text(end, "message");
    if (!pod)
        return;
    if (reason && strcmp(reason, "Error") != 0 && strcmp(reason, "Completed") != 0)
        buf_printf(out, "pod %s: %s", kube_name(pod), reason);
    else
        buf_printf(out, "pod %s ended with status %d", kube_name(pod),
                   (int)json_integer_value(json_object_get(end, "exitCode")));
    if (message && message[0])
        buf_printf(out, ": %s", message);
}
