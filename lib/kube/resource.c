/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/resource.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define RESOURCE(variable, group_, version_, plural_, kind_, namespaced_)                          \
    const struct kube_resource variable = {.group = (group_),                                      \
                                           .version = (version_),                                  \
                                           .plural = (plural_),                                    \
                                           .kind = (kind_),                                        \
                                           .namespaced = (namespaced_)}

RESOURCE(kube_pods, "", "v1", "pods", "Pod", true);
RESOURCE(kube_events, "", "v1", "events", "Event", true);
RESOURCE(kube_nodes, "", "v1", "nodes", "Node", false);
RESOURCE(kube_secrets, "", "v1", "secrets", "Secret", true);
RESOURCE(kube_config_maps, "", "v1", "configmaps", "ConfigMap", true);
RESOURCE(kube_service_accounts, "", "v1", "serviceaccounts", "ServiceAccount", true);
RESOURCE(kube_namespaces, "", "v1", "namespaces", "Namespace", false);
RESOURCE(kube_resource_quotas, "", "v1", "resourcequotas", "ResourceQuota", true);
RESOURCE(kube_limit_ranges, "", "v1", "limitranges", "LimitRange", true);
RESOURCE(kube_jobs, "batch", "v1", "jobs", "Job", true);
RESOURCE(kube_leases, "coordination.k8s.io", "v1", "leases", "Lease", true);
RESOURCE(kube_roles, "rbac.authorization.k8s.io", "v1", "roles", "Role", true);
RESOURCE(kube_role_bindings, "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding",
         true);
RESOURCE(kube_network_policies, "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy",
         true);
RESOURCE(kube_resource_claims, "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true);
RESOURCE(kube_resource_claim_templates, "resource.k8s.io", "v1", "resourceclaimtemplates",
         "ResourceClaimTemplate", true);
RESOURCE(kube_resource_slices, "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false);
/* the versions of these two are the newest that a cluster serves */
RESOURCE(kube_device_taint_rules, "resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule",
         false);
RESOURCE(kube_pod_groups, "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", true);
RESOURCE(kube_compute_domains, "resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain",
         true);
RESOURCE(kube_priority_classes, "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass",
         false);
RESOURCE(kube_dra_jobs, "drarun.dev", "v1alpha1", "drajobs", "DraJob", true);
RESOURCE(kube_device_classes, "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false);

const struct kube_resource *kube_resource_find(const char *api_version, const char *kind)
{
    static const struct kube_resource *const all[] = {&kube_pods,
                                                      &kube_events,
                                                      &kube_nodes,
                                                      &kube_secrets,
                                                      &kube_config_maps,
                                                      &kube_service_accounts,
                                                      &kube_namespaces,
                                                      &kube_jobs,
                                                      &kube_leases,
                                                      &kube_roles,
                                                      &kube_role_bindings,
                                                      &kube_network_policies,
                                                      &kube_resource_claims,
                                                      &kube_resource_claim_templates,
                                                      &kube_resource_slices,
                                                      &kube_device_classes,
                                                      &kube_compute_domains};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        char version[128];
        snprintf(version, sizeof version, "%s%s%s", all[i]->group, *all[i]->group ? "/" : "",
                 all[i]->version);
        if (strcmp(version, api_version) == 0 && strcmp(all[i]->kind, kind) == 0)
            return all[i];
    }
    return NULL;
}

/* RFC 3986: all but its unreserved characters. */
static void add_escaped(struct buf *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++) {
        if (strchr(plain, *text))
            buf_add(out, text, 1);
        else
            buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

static void add_part(struct buf *out, const char *text)
{
    buf_add_str(out, "/");
    add_escaped(out, text);
}

void kube_path(const struct kube_target *target, struct buf *out)
{
    const struct kube_resource *r = target->resource;
    buf_add_str(out, *r->group ? "/apis" : "/api");
    if (*r->group)
        add_part(out, r->group);
    add_part(out, r->version);
    if (r->namespaced && target->namespace_) {
        buf_add_str(out, "/namespaces");
        add_part(out, target->namespace_);
    }
    add_part(out, r->plural);
    if (target->name)
        add_part(out, target->name);
    if (target->subresource)
        add_part(out, target->subresource);
}

void kube_query_add(struct buf *query, const char *name, const char *value)
{
    if (!value)
        return;
    if (query->len)
        buf_add_str(query, "&");
    add_escaped(query, name);
    buf_add_str(query, "=");
    add_escaped(query, value);
}

void kube_target_describe(const char *verb, const struct kube_target *target, struct buf *out)
{
    const struct kube_resource *r = target->resource;
    buf_printf(out, "%s %s%s%s", verb, r->plural, target->subresource ? "/" : "",
               target->subresource ? target->subresource : "");
    if (target->name)
        buf_printf(out, " \"%s\"", target->name);
    if (r->namespaced && target->namespace_)
        buf_printf(out, " in namespace %s", target->namespace_);
}
