/* SPDX-License-Identifier: Apache-2.0 */
/* The claim that the scheduler makes for a pod's extended resources (DRAExtendedResource): on nodes
 * whose device plugins have none of them, devices of a DeviceClass serve them. Pure. */
#ifndef DRARUN_JOBS_EXTENDED_CLAIM_H
#define DRARUN_JOBS_EXTENDED_CLAIM_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

struct extended_cluster {
    const json_t *nodes;   /* array of Nodes, or NULL */
    const json_t *classes; /* array of DeviceClasses, or NULL */
    unsigned minor;        /* of Kubernetes, as in struct predict_cluster */
};

/* An array of devices.requests of resource.k8s.io/v1, empty for a pod (its spec) that needs none.
 * It is that of all nodes: a resource that some of them have from a plugin, and others do not, is
 * left out, and noted as not predicted. resources: an object that gets request -> resource.
 * It and notes may be NULL. -EINVAL, kind SPEC: an amount that is no
 * quantity. */
int extended_claim(const json_t *pod, const struct extended_cluster *cluster, json_t **ret_requests,
                   json_t *resources, struct strlist *notes, struct drarun_error *err);

/* Of all nodes: a device plugin has the resource, a DeviceClass serves it, or each on some;
 * UNKNOWN: there is a class, and amounts of a Node are not known. */
enum extended_source {
    EXTENDED_SOURCE_PLUGIN,
    EXTENDED_SOURCE_CLASS,
    EXTENDED_SOURCE_BOTH,
    EXTENDED_SOURCE_UNKNOWN,
};

/* *ret_class: that which serves it where no plugin does, borrowed; NULL: none, which is PLUGIN.
 * -EINVAL as above. */
int extended_claim_source(const struct extended_cluster *cluster, const char *resource,
                          enum extended_source *ret_source, const char **ret_class,
                          struct drarun_error *err);
/* Whether a request, or a result's, is of such a claim. */
bool extended_claim_has(const char *request);

#endif
