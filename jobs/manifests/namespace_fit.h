/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the ResourceQuotas and LimitRanges of a namespace admit what a job creates: what the API
 * server's admission plugins LimitRanger and ResourceQuota look at. Pure. */
#ifndef DRARUN_JOBS_NAMESPACE_FIT_H
#define DRARUN_JOBS_NAMESPACE_FIT_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/spec/spec.h"
#include "lib/base/strlist.h"

struct namespace_rules {
    const json_t *quotas, *limit_ranges; /* arrays; NULL: none were given */
    const json_t *classes;               /* array of DeviceClasses; NULL: none were given */
    bool classes_known;                  /* there are no others */
    const json_t *nodes;                 /* array of Nodes; NULL: none were given */
    unsigned minor;                      /* of Kubernetes, as in struct predict_cluster */
};

/* Those of the job's namespace count; of a job that names none, those that are given, if all are of
 * one namespace. *ret_why, the caller's: the first that is in the way, as "ResourceQuota team-a:
 * requests.nvidia.com/gpu: the job asks for 16, 8 of 16 are used"; NULL: they admit all of it.
 * notes: what of them is not modelled. -EINVAL, kind SPEC: an amount that is no quantity. */
int namespace_fit(const struct job_spec *spec, const struct namespace_rules *rules, char **ret_why,
                  struct strlist *notes, struct drarun_error *err);

/* Gives the containers of a pod (its `spec`) the amounts that they do not say and the LimitRanges
 * have defaults of: the scheduler sees the pod with those. Which rules count, as above. -ENOMEM. */
int namespace_default(const struct job_spec *spec, const struct namespace_rules *rules, json_t *pod,
                      struct drarun_error *err);

#endif
