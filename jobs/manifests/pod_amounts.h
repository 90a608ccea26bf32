/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for of CPU, memory and the rest, as numbers: bytes, cores, devices. Pure. */
#ifndef DRARUN_JOBS_POD_AMOUNTS_H
#define DRARUN_JOBS_POD_AMOUNTS_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"

/* The quantity called name of a list of resources; 0 where it has none. -EINVAL, kind SPEC: it is
 * no quantity. */
int pod_amount(const json_t *list, const char *name, double *ret_amount, struct drarun_error *err);

/* Adds resource -> a real number to the object sum, after the scheduler's resource.PodRequests
 * (k8s.io/component-helpers/resource). pod: its spec, whose own resources replace those of its
 * containers. A limit is a request, too, where none is given. -EINVAL as above. */
int pod_requests(const json_t *pod, json_t *sum, struct drarun_error *err);
/* The same of limits alone, as quotas count them. */
int pod_limits(const json_t *pod, json_t *sum, struct drarun_error *err);
bool pod_amount_is_huge_pages(const char *name);
/* A pod itself can say how much of it its containers need, as IsSupportedPodLevelResource. */
bool pod_amount_is_of_pods(const char *name);
/* Whether the pod itself says how much it needs of what pods can say it of. */
bool pod_has_amounts(const json_t *pod);

#endif
