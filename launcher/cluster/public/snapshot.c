/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/public/snapshot.h"

#include <errno.h>
#include <string.h>

#include "jobs/predict/absent_nodes.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

static const struct kube_resource node_pools = {
    .group = "karpenter.sh",
    .version = "v1",
    .plural = "nodepools",
    .kind = "NodePool",
};

static const struct known {
    const char *kind;
    const struct kube_resource *resource;
    const char *namespace, *name; /* that object alone; NULL: all */
    bool own;                     /* all of the job's namespace alone */
    bool seldom;                  /* few clusters have it: that it is not there is not said */
} known[] = {
    {.kind = "ResourceSlice", .resource = &kube_resource_slices},
    {.kind = "Node", .resource = &kube_nodes},
    {.kind = "DeviceClass", .resource = &kube_device_classes},
    {.kind = "ResourceClaim", .resource = &kube_resource_claims},
    {.kind = "DeviceTaintRule", .resource = &kube_device_taint_rules},
    {.kind = "ResourceQuota", .resource = &kube_resource_quotas, .own = true},
    {.kind = "LimitRange", .resource = &kube_limit_ranges, .own = true},
    {.kind = "ConfigMap",
     .resource = &kube_config_maps,
     .namespace = AUTOSCALER_NAMESPACE,
     .name = AUTOSCALER_STATUS,
     .seldom = true},
    {.kind = "NodePool", .resource = &node_pools, .seldom = true},
};

static const struct known *find(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(kind, known[i].kind) == 0)
            return &known[i];
    return NULL;
}

static int read_one(struct cluster *cluster, const struct known *which, json_t *objects,
                    struct drarun_error *err)
{
    const struct kube_target target = {
        .resource = which->resource, .namespace_ = which->namespace, .name = which->name};
    CLEANUP(json_decrefp) json_t *object = NULL;
    int rc = cluster_get(cluster, &target, &object, err);
    if (rc == 0 && json_array_append(objects, object) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}

static int read_kind(struct cluster *cluster, const char *namespace,
                     const struct cluster_kind *kind, const struct known *which,
                     struct drarun_error *err)
{
    struct kube_resource resource = *which->resource;
    const struct kube_target target = {.resource = &resource,
                                       .namespace_ = which->own ? namespace : NULL};
    CLEANUP(json_decrefp) json_t *list = NULL;
    size_t i;
    json_t *item;
    if (which->name)
        return read_one(cluster, which, kind->objects, err);
    if (which->resource == &kube_device_taint_rules && !cluster->taint_rules)
        return 0; /* there are none */
    if (which->resource == &kube_device_taint_rules)
        resource.version = cluster->taint_rules;
    else if (strcmp(resource.group, "resource.k8s.io") == 0)
        resource.version = cluster_claims_version(cluster);
    int rc = cluster_list(cluster, &target, NULL, &list, err);
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        if (rc == 0 && json_array_append(kind->objects, item) < 0)
            rc = error_set(err, ENOMEM, "out of memory");
    }
    return rc;
}

int snapshot_read(struct cluster *cluster, const char *namespace, const struct cluster_kind *kinds,
                  size_t count, struct drarun_error *err)
{
    if (!cluster->api)
        return error_kind(err, DRARUN_ERR_CLUSTER, ENOTSUP, "%s serves no resource.k8s.io",
                          kube_config_server(cluster->config));
    for (size_t i = 0; i < count; i++) {
        struct drarun_error missing = {0};
        const struct known *which = find(kinds[i].kind);
        if (!which)
            continue;
        int rc = read_kind(cluster, namespace, &kinds[i], which, &missing);
        if (rc < 0 && (i == 0 || (rc != -EACCES && rc != -ENOENT)))
            return error_kind(err, missing.kind, missing.code, "%s", missing.text);
        if (rc < 0 && which->seldom)
            log_verbose("%s; done without", missing.text);
        else if (rc < 0)
            log_note("%s; done without", missing.text);
        else if (kinds[i].known)
            *kinds[i].known = true;
    }
    return 0;
}

int snapshot_plan(struct cluster *cluster, const char *namespace, struct plan_objects *objects,
                  struct drarun_error *err)
{
    struct cluster_kind kinds[PLAN_KINDS];
    int rc = plan_objects_kinds(objects, kinds, err);
    objects->known = true;
    objects->minor = cluster->minor;
    return rc == 0 ? snapshot_read(cluster, namespace, kinds, PLAN_KINDS, err) : rc;
}
