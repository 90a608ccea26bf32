/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/pod_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cluster/client/job_clock.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define SOON_MS 1000   /* after a change of a worker: the scheduler writes the group last */
#define AGAIN_MS 2000  /* while it has told nothing: it may at any time */
#define LATER_MS 10000 /* once it has */

static bool is_wanted(const struct pod_group *group)
{
    return group->wanted && group->name && strcmp(group->wanted, group->name) == 0;
}

static void forget(struct pod_group *group)
{
    free(TAKE_PTR(group->name));
    json_decref(TAKE_PTR(group->object));
    group->told = (struct waiting_group){0};
}

void pod_group_want(struct pod_group *group, const char *name)
{
    if (name && group->wanted && strcmp(name, group->wanted) == 0)
        return;
    free(TAKE_PTR(group->wanted));
    group->wanted = name ? strdup(name) : NULL;
    if (!is_wanted(group))
        group->due_ms = 0;
}

int64_t pod_group_due(const struct pod_group *group)
{
    bool due = group->wanted && !group->refused && !pod_group_is_reading(group);
    return due ? group->due_ms : INT64_MAX;
}

void pod_group_stir(struct pod_group *group, int64_t now_ms)
{
    group->stirred = true;
    if (group->due_ms > now_ms + SOON_MS)
        group->due_ms = now_ms + SOON_MS;
}

static bool has_conditions(const json_t *object)
{
    return json_array_size(json_object_get(json_object_get(object, "status"), "conditions")) > 0;
}

/* Another one that is wanted by now is due. */
static int64_t due_again(const struct pod_group *group, const json_t *object)
{
    bool wanted = group->wanted && strcmp(group->wanted, group->asked) == 0;
    int64_t pause = group->stirred ? SOON_MS : has_conditions(object) ? LATER_MS : AGAIN_MS;
    return wanted ? lead_now() + pause : 0;
}

static void take(struct pod_group *group, json_t *object_take, char *name_take)
{
    forget(group);
    group->name = name_take;
    group->object = object_take;
    group->told = (struct waiting_group){.name = group->name, .object = group->object};
}

static void on_read(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct pod_group *group = arg;
    const json_t *object = err ? NULL : answer->body;
    group->call = NULL;
    group->refused = err && err->code == EACCES;
    group->due_ms = due_again(group, object);
    if (err)
        log_verbose("%s", err->text);
    if (!err || err->code == ENOENT)
        take(group, json_incref(unconst(object)), TAKE_PTR(group->asked));
    free(TAKE_PTR(group->asked));
    group->answered(group->arg);
}

void pod_group_start(struct pod_group *group, struct cluster *cluster, const char *namespace,
                     void (*answered)(void *arg), void *arg)
{
    struct drarun_error err = {0};
    struct kube_resource resource = kube_pod_groups;
    const struct kube_target target = {
        .resource = &resource, .namespace_ = namespace, .name = group->wanted};
    resource.version = cluster->pod_groups;
    group->refused = !cluster->pod_groups;
    if (!group->wanted || group->refused)
        return;
    group->due_ms = lead_now() + AGAIN_MS;
    group->stirred = false;
    group->answered = answered;
    group->arg = arg;
    group->asked = strdup(group->wanted);
    if (group->asked && kube_get(cluster->client, &target, on_read, group, &group->call, &err) == 0)
        return;
    log_verbose("%s", group->asked ? err.text : "out of memory");
    free(TAKE_PTR(group->asked));
}

bool pod_group_is_reading(const struct pod_group *group)
{
    return group->call;
}

void pod_group_stop(struct pod_group *group)
{
    kube_call_cancel(TAKE_PTR(group->call));
    free(TAKE_PTR(group->asked));
}

static void on_done(void *arg)
{
    *(bool *)arg = true;
}

void pod_group_look(struct pod_group *group, struct cluster *cluster, const char *namespace)
{
    bool done = false;
    pod_group_start(group, cluster, namespace, on_done, &done);
    if (pod_group_is_reading(group) && cluster_await(cluster, &done, NULL) < 0)
        pod_group_stop(group);
}

const struct waiting_group *pod_group_told(const struct pod_group *group)
{
    return is_wanted(group) ? &group->told : NULL;
}

void pod_group_done(struct pod_group *group)
{
    pod_group_stop(group);
    forget(group);
    free(TAKE_PTR(group->wanted));
}
