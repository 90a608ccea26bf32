/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/pod_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"

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
    return group->wanted && !group->refused ? group->due_ms : INT64_MAX;
}

void pod_group_stir(struct pod_group *group, int64_t now_ms)
{
    if (group->due_ms > now_ms + SOON_MS)
        group->due_ms = now_ms + SOON_MS;
}

static bool has_conditions(const json_t *object)
{
    return json_array_size(json_object_get(json_object_get(object, "status"), "conditions")) > 0;
}

void pod_group_look(struct pod_group *group, struct cluster *cluster, const char *namespace,
                    int64_t now_ms)
{
    struct drarun_error err = {0};
    struct kube_resource resource = kube_pod_groups;
    cleanup_free char *name = group->wanted ? strdup(group->wanted) : NULL;
    const struct kube_target target = {
        .resource = &resource, .namespace_ = namespace, .name = name};
    json_t *object = NULL;
    resource.version = cluster->pod_groups;
    group->refused = !cluster->pod_groups;
    if (!name || group->refused)
        return;
    int rc = cluster_get(cluster, &target, &object, &err);
    group->refused = rc == -EACCES;
    group->due_ms = now_ms + (has_conditions(object) ? LATER_MS : AGAIN_MS);
    if (rc < 0)
        log_verbose("%s", err.text);
    if (rc < 0 && rc != -ENOENT)
        return;
    forget(group);
    group->name = TAKE_PTR(name);
    group->object = object;
    group->told = (struct waiting_group){.name = group->name, .object = object};
}

const struct waiting_group *pod_group_told(const struct pod_group *group)
{
    return is_wanted(group) ? &group->told : NULL;
}

void pod_group_done(struct pod_group *group)
{
    forget(group);
    free(TAKE_PTR(group->wanted));
}
