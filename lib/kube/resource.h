/* SPDX-License-Identifier: Apache-2.0 */
/* What the API calls a resource, and the paths and queries made of it. Pure. */
#ifndef DRARUN_KUBE_RESOURCE_H
#define DRARUN_KUBE_RESOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include "lib/base/buf.h"

struct kube_resource {
    const char *group; /* "" for the core */
    const char *version;
    const char *plural; /* "resourceclaims" */
    const char *kind;   /* "ResourceClaim" */
    bool namespaced;
};

extern const struct kube_resource kube_pods, kube_events, kube_nodes, kube_secrets,
    kube_config_maps, kube_service_accounts, kube_namespaces, kube_jobs, kube_leases, kube_roles,
    kube_role_bindings, kube_network_policies, kube_resource_claims, kube_resource_claim_templates,
    kube_resource_slices, kube_pod_groups, kube_device_classes, kube_device_taint_rules,
    kube_compute_domains, kube_priority_classes, kube_dra_jobs, kube_resource_quotas,
    kube_limit_ranges;

/* The one above of this apiVersion and kind, or NULL. */
const struct kube_resource *kube_resource_find(const char *api_version, const char *kind);

struct kube_target { /* borrowed */
    const struct kube_resource *resource;
    const char *namespace_;  /* NULL: none, or all of them */
    const char *name;        /* NULL: the collection */
    const char *subresource; /* "log", "status", "eviction", ..; NULL */
};

/* "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/y" */
void kube_path(const struct kube_target *target, struct buf *out);
/* Appends name=value, escaped, with "&" when something stands before; value NULL adds nothing. */
void kube_query_add(struct buf *query, const char *name, const char *value);
/* 'create pods "y" in namespace x', for messages */
void kube_target_describe(const char *verb, const struct kube_target *target, struct buf *out);

#endif
