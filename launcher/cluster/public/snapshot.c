/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/public/snapshot.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

static const struct {
    const char *kind;
    const struct kube_resource *resource;
} known[] = {
    {"ResourceSlice", &kube_resource_slices}, {"Node", &kube_nodes},
    {"DeviceClass", &kube_device_classes},    {"ResourceClaim", &kube_resource_claims},
    {"ResourceQuota", &kube_resource_quotas}, {"LimitRange", &kube_limit_ranges},
};

static bool find(const struct cluster *cluster, const char *kind,
                 struct kube_resource *ret_resource)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(kind, known[i].kind) != 0)
            continue;
        *ret_resource = *known[i].resource;
        if (strcmp(ret_resource->group, "resource.k8s.io") == 0)
            ret_resource->version = cluster_claims_version(cluster);
        return true;
    }
    return false;
}

static int read_kind(struct cluster *cluster, const struct cluster_kind *kind,
                     const struct kube_resource *resource, struct drarun_error *err)
{
    const struct kube_target target = {.resource = resource,
                                       .namespace_ = kind->known ? cluster->namespace : NULL};
    CLEANUP(json_decrefp) json_t *list = NULL;
    size_t i;
    json_t *item;
    int rc = cluster_list(cluster, &target, NULL, &list, err);
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        if (rc == 0 && json_array_append(kind->objects, item) < 0)
            rc = error_set(err, ENOMEM, "out of memory");
    }
    return rc;
}

int snapshot_read(struct cluster *cluster, const struct cluster_kind *kinds, size_t count,
                  struct drarun_error *err)
{
    if (!cluster->api)
        return error_kind(err, DRARUN_ERR_CLUSTER, ENOTSUP, "%s serves no resource.k8s.io",
                          kube_config_server(cluster->config));
    for (size_t i = 0; i < count; i++) {
        struct kube_resource resource;
        struct drarun_error missing = {0};
        if (!find(cluster, kinds[i].kind, &resource))
            continue;
        int rc = read_kind(cluster, &kinds[i], &resource, &missing);
        if (rc < 0 && (i == 0 || (rc != -EACCES && rc != -ENOENT)))
            return error_kind(err, missing.kind, missing.code, "%s", missing.text);
        if (rc < 0)
            log_note("%s; done without", missing.text);
        else if (kinds[i].known)
            *kinds[i].known = true;
    }
    return 0;
}

int snapshot_plan(struct cluster *cluster, struct plan_objects *objects, struct drarun_error *err)
{
    struct cluster_kind kinds[PLAN_KINDS];
    int rc = plan_objects_kinds(objects, kinds, err);
    objects->known = true;
    return rc == 0 ? snapshot_read(cluster, kinds, PLAN_KINDS, err) : rc;
}
