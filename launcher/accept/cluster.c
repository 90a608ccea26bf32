/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cluster/client/job_map.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/order.h"
#include "lib/doc/value.h"
#include "lib/dra/taint.h"

#define TAINT_TRIES 8u

/* Other taints may be tolerated by what render or an admission webhook adds to the pods. */
static const char *taint_of_control_plane(const json_t *node, const json_t *tolerations)
{
    static const char *const keys[] = {"node-role.kubernetes.io/control-plane",
                                       "node-role.kubernetes.io/master"};
    const json_t *taints = json_object_get(json_object_get(node, "spec"), "taints");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        CLEANUP(json_decrefp)
        json_t *one = json_pack("[O*]", value_find(taints, "key", keys[i]));
        if (taint_repelling(one, tolerations))
            return keys[i];
    }
    return NULL;
}

json_t *accept_why_not(const json_t *node, const json_t *pod)
{
    const json_t *ready = kube_condition(node, "Ready");
    if (json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable")))
        return json_string("it is cordoned");
    if (!ready)
        return json_string("it has never been ready");
    if (strcmp(value_text_or(ready, "status", ""), "True") != 0)
        return json_string("it is not ready");
    const char *key =
        pod ? taint_of_control_plane(node, json_object_get(pod, "tolerations")) : NULL;
    return key ? json_sprintf("the job does not tolerate its taint %s: give the job a toleration, "
                              "or choose the nodes with --nodes",
                              key)
               : NULL;
}

int accept_list_nodes(struct cluster *cluster, const char *selector, const json_t *pod,
                      struct strlist *ret_names, json_t *ret_uids, json_t *ret_left_out,
                      struct drarun_error *err)
{
    const struct kube_target target = {.resource = &kube_nodes};
    const struct kube_select select = {.labels = selector};
    CLEANUP(json_decrefp) json_t *list = NULL;
    size_t i;
    json_t *node;
    int rc = cluster_list(cluster, &target, &select, &list, err);
    if (rc < 0)
        return rc;
    json_array_foreach(json_object_get(list, "items"), i, node)
    {
        const char *name = kube_name(node);
        json_t *why = accept_why_not(node, selector ? NULL : pod);
        if (why) {
            json_object_set_new(ret_left_out, name, why);
            continue;
        }
        strlist_add(ret_names, name);
        json_object_set_new(ret_uids, name, json_string(kube_uid(node)));
    }
    if (ret_names->failed)
        return error_set(err, ENOMEM, "out of memory");
    qsort(ret_names->items, ret_names->count, sizeof *ret_names->items, order_texts);
    return 0;
}

static bool is_there(struct cluster *cluster, const struct kube_target *target)
{
    struct drarun_error unseen = {0};
    CLEANUP(json_decrefp) json_t *object = NULL;
    return cluster_get(cluster, target, &object, &unseen) == 0;
}

/* A user who may not create it gets the one that an administrator has made. */
int accept_ensure_priority(struct cluster *cluster, struct drarun_error *err)
{
    const struct kube_target target = {.resource = &kube_priority_classes,
                                       .name = ACCEPT_PRIORITY_CLASS};
    CLEANUP(json_decrefp)
    json_t *made = json_pack("{s:s, s:s, s:{s:s}, s:i, s:s, s:s}", "apiVersion",
                             "scheduling.k8s.io/v1", "kind", "PriorityClass", "metadata", "name",
                             ACCEPT_PRIORITY_CLASS, "value", -1000000, "preemptionPolicy", "Never",
                             "description", "drarun accept: tests of nodes, which give way to all");
    if (!made)
        return error_set(err, ENOMEM, "out of memory");
    int rc = cluster_create(cluster, &target, made, NULL, err);
    if (rc == -EEXIST || (rc == -EACCES && is_there(cluster, &target))) {
        *err = (struct drarun_error){0};
        return 0;
    }
    return rc < 0 ? error_prefix(err,
                                 "no priority class " ACCEPT_PRIORITY_CLASS
                                 ": kubectl create priorityclass " ACCEPT_PRIORITY_CLASS
                                 " --value=-1000000 --preemption-policy=Never, or name another one "
                                 "with --priority-class")
                  : rc;
}

static json_t *taints_but_ours(const json_t *node, bool *ret_ours)
{
    json_t *kept = json_array(), *taint;
    size_t i;
    *ret_ours = false;
    json_array_foreach(json_object_get(json_object_get(node, "spec"), "taints"), i, taint)
    {
        if (strcmp(value_text_or(taint, "key", ""), ACCEPT_TAINT) == 0)
            *ret_ours = true;
        else
            json_array_append(kept, taint);
    }
    return kept;
}

/* -EBUSY: somebody has changed the node since it was read. */
static int taint_once(struct cluster *cluster, const char *name, bool unfit,
                      struct drarun_error *err)
{
    const struct kube_target target = {.resource = &kube_nodes, .name = name};
    CLEANUP(json_decrefp) json_t *node = NULL;
    bool ours;
    int rc = cluster_get(cluster, &target, &node, err);
    if (rc < 0)
        return rc;
    json_t *taints = taints_but_ours(node, &ours);
    if (ours == unfit) {
        json_decref(taints);
        return 0;
    }
    if (unfit)
        json_array_append_new(taints, json_pack("{s:s, s:s, s:s}", "key", ACCEPT_TAINT, "value",
                                                "accept", "effect", "NoSchedule"));
    /* the version keeps what others change meanwhile */
    CLEANUP(json_decrefp)
    json_t *patch = json_pack("{s:{s:s}, s:{s:o}}", "metadata", "resourceVersion",
                              kube_resource_version(node), "spec", "taints", taints);
    if (!patch)
        return error_set(err, ENOMEM, "out of memory");
    rc = cluster_merge_patch(cluster, &target, patch, err);
    return rc < 0 ? rc : 1;
}

/* Its kubelet and controllers write a node, too, at any moment. */
int accept_taint(struct cluster *cluster, const char *name, bool unfit, struct drarun_error *err)
{
    int rc = -EBUSY;
    for (unsigned i = 0; rc == -EBUSY && i < TAINT_TRIES; i++) {
        *err = (struct drarun_error){0};
        rc = taint_once(cluster, name, unfit, err);
    }
    return rc;
}

void accept_ask_wait(struct cluster *cluster, const char *job, const char *namespace,
                     struct cluster_read *read)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(job, name);
    const struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = namespace, .name = name};
    cluster_read_start(cluster, &target, read, &read->err);
}

/* Without a ConfigMap the client has not made the job yet. */
void accept_take_wait(struct cluster *cluster, struct cluster_read *read,
                      struct trial_wait *ret_wait)
{
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *map = NULL, *doc = NULL;
    int rc = cluster_read_end(cluster, read, &map, &err);
    if (rc == 0)
        rc = job_map_status(map, &doc, &err);
    if (rc == 0 || rc == -ENOENT) {
        trial_wait_read(doc, ret_wait);
        return;
    }
    *ret_wait = (struct trial_wait){.unknown = true};
    log_verbose("how long the job of a test has waited is not known: %s", err.text);
}
