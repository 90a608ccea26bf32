/* SPDX-License-Identifier: Apache-2.0 */
/* What a ResourceClaim was given: status.allocation.devices.results and status.devices, the same in
 * resource.k8s.io v1, v1beta2 and v1beta1. Pure. */
#ifndef DRARUN_JOBS_ALLOCATION_H
#define DRARUN_JOBS_ALLOCATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

struct allocation_result { /* borrowed from the claim */
    const char *request;   /* "nic", or "nic/fast" where a firstAvailable chose */
    const char *driver, *pool, *device;
    const char *pod_name; /* status.devices: its interface in the pod; NULL */
    const json_t *ips;    /* array of CIDR texts, or NULL */
};

struct allocation {
    const char *claim;                 /* metadata.name */
    const json_t *selector;            /* of the nodes that reach its devices; NULL: all do */
    const char *node;                  /* metadata.name of the node selector; NULL */
    struct allocation_result *results; /* without those of adminAccess, which give no device */
    size_t count;
    bool gpu_asked; /* a request names a class with "gpu" in it, so the job wants GPUs */
};

/* -EAGAIN when the claim is not allocated yet, -EINVAL when it is no ResourceClaim or a result
 * lacks a part; both name the claim. */
int allocation_read(const json_t *claim, struct allocation *ret_allocation,
                    struct drarun_error *err);
void allocation_done(struct allocation *allocation);

/* The names of the claims that a Pod holds: status.resourceClaimStatuses, the claims it names
 * directly, and status.extendedResourceClaimStatus, which the scheduler makes for extended
 * resources. */
void allocation_pod_claims(const json_t *pod, struct strlist *names);

/* Devices of the requests gpu and gpu-I (jobs/manifests/claims.h) of an array of claims; 0 of what
 * is not allocated yet. */
uint32_t allocation_count_gpus(const json_t *claims);

#endif
