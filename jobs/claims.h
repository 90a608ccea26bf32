/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's ResourceClaim, for each version of resource.k8s.io (docs/design/010-claims.md).
 *
 * GPUs and NICs are requests of one claim. Where both are claimed by count and the spec wants them
 * aligned, they are split into pairs gpu-I, nic-I, each with a matchAttribute constraint on
 * resource.kubernetes.io/pcieRoot; otherwise they are the requests gpu and nic. The part of a
 * request's name before the first "-" always says which kind it is.
 *
 * Steps of the ladder: `align: required` has one, with constraints; `preferred` has two, with and
 * then without (tried when no node can meet the first); `none` has one, without. A prioritized list
 * cannot replace the second step: the allocator takes the first alternative that still leads to a
 * solution, so it would stop at a crossed pair where another GPU makes an aligned one.
 *
 * Pure; callers own what they get. Errors have kind DRARUN_ERR_SPEC. */
#ifndef DRARUN_JOBS_CLAIMS_H
#define DRARUN_JOBS_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/spec.h"

#define CLAIMS_ROOT_ATTRIBUTE "resource.kubernetes.io/pcieRoot"

enum claims_api { CLAIMS_API_V1 = 1, CLAIMS_API_V1BETA2, CLAIMS_API_V1BETA1 };

const char *claims_api_version(enum claims_api api); /* "resource.k8s.io/v1" */
/* "v1", "v1beta2", "v1beta1", with or without the group; 0 for anything else. */
enum claims_api claims_api_parse(const char *text);

/* What keeps a GPU and its NIC together. */
enum claims_alignment {
    CLAIMS_ALIGNED_BY_CLAIM = 1, /* a constraint for each pair */
    CLAIMS_ALIGNED_IN_POD,       /* wanted, but no constraint can say it: checked by the agent */
    CLAIMS_NOT_ALIGNED,          /* nothing to align, or not wanted */
};
enum claims_alignment claims_alignment(const struct job_spec *spec);

/* Does a worker claim anything? GPUs of a device plugin are no claim. */
bool claims_wanted(const struct job_spec *spec);

/* A class that the job's claims name and that is not among the cluster's (DeviceClass objects), the
 * spec's; NULL: all are there, or classes is NULL. */
const char *claims_missing_class(const struct job_spec *spec, const json_t *classes);

/* Steps of the ladder, at least 1; the steps are 0 .. claims_attempts() - 1, best first. */
unsigned claims_attempts(const struct job_spec *spec);

/* The `spec` of a ResourceClaim. -EINVAL when the spec claims nothing. */
int claims_spec(const struct job_spec *spec, enum claims_api api, unsigned step,
                json_t **ret_claim_spec, struct drarun_error *err);

/* The ComputeDomain's `spec`: the user's fields over numNodes 0 and channel template NAME-channel.
 * *ret_template is the name of that template, a text that the caller owns. */
int claims_compute_domain(const struct job_spec *spec, json_t **ret_domain_spec,
                          json_t **ret_template, struct drarun_error *err);

#endif
