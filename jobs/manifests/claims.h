/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's ResourceClaim, for each version of resource.k8s.io (docs/design/010-claims.md).
 *
 * GPUs and NICs are requests of one claim. Where both are claimed by count and the spec wants them
 * aligned, they are split into pairs gpu-I, nic-I, each with a matchAttribute constraint;
 * otherwise they are the requests gpu and nic. CPUs are the request cpu. The part of a request's
 * name before the first "-" always says which kind it is.
 *
 * Steps of the ladder, each one rung: `align: preferred` has the rungs root, NUMA node and none,
 * each tried when no node can meet the one before; `required` has root alone; `none` has none. On a
 * machine where GPU and NIC never share a root (struct machine), there is no rung root: `required`
 * has the NUMA node then. `preferred` leaves the NUMA node out for 8 pairs and more. A prioritized
 * list cannot replace the steps: the allocator takes the first alternative that still leads to a
 * solution, so it would stop at a crossed pair where another GPU makes an aligned one.
 *
 * Pure; callers own what they get. Errors have kind DRARUN_ERR_SPEC. */
#ifndef DRARUN_JOBS_CLAIMS_H
#define DRARUN_JOBS_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/spec/spec.h"

#define CLAIMS_ROOT_ATTRIBUTE "resource.kubernetes.io/pcieRoot"
#define CLAIMS_NUMA_ATTRIBUTE "resource.kubernetes.io/numaNode"

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
enum claims_alignment claims_alignment(const struct spec_role *role);

/* What GPU and NIC of a pair share by a step's constraints. */
enum claims_rung {
    CLAIMS_RUNG_ROOT = 1,
    CLAIMS_RUNG_NUMA,
    CLAIMS_RUNG_NONE, /* nothing that the claim says */
};
/* A role whose ladder is shorter stays at its last rung. */
enum claims_rung claims_rung(const struct spec_role *role, unsigned step);
/* "pcieRoot", "numaNode", "none": in plans and status documents. */
const char *claims_rung_name(enum claims_rung rung);
/* For people: "a NIC of its PCIe root", "a NIC of its NUMA node", "any NIC". */
const char *claims_rung_words(enum claims_rung rung);

/* Does a worker claim anything? GPUs of a device plugin are no claim. */
bool claims_wanted_by(const struct spec_role *role);
bool claims_wanted(const struct job_spec *spec); /* of any role */
/* Do pods of the job name claims beside those: a ComputeDomain's channel, what workers share, the
 * template's own? */
bool claims_named(const struct job_spec *spec);

/* A class that the job's claims name and that is not among the cluster's (DeviceClass objects), the
 * spec's; NULL: all are there, or classes is NULL. */
const char *claims_missing_class(const struct job_spec *spec, const json_t *classes);

/* Steps of the ladder, at least 1; the steps are 0 .. claims_attempts() - 1, best first. All roles
 * of a job take each step together, and the job has as many as the role that has the most. */
unsigned claims_attempts_of(const struct spec_role *role);
unsigned claims_attempts(const struct job_spec *spec);

/* The role whose ladder is the job's: the longest, the first of several. */
const struct spec_role *claims_aligned_role(const struct job_spec *spec);

/* The `spec` of a ResourceClaim. -EINVAL when the role claims nothing. */
int claims_spec(const struct spec_role *role, enum claims_api api, unsigned step,
                json_t **ret_claim_spec, struct drarun_error *err);

/* Whether these two claims of a role are of one step of its ladder: their GPUs and NICs share the
 * same. Their `spec`s; either may be as the API server returns it. */
bool claims_same_step(const json_t *claim_spec, const json_t *other);

/* The ComputeDomain's `spec`: the user's fields over numNodes 0 and channel template NAME-channel.
 * *ret_template is the name of that template, a text that the caller owns. */
int claims_compute_domain(const struct job_spec *spec, json_t **ret_domain_spec,
                          json_t **ret_template, struct drarun_error *err);

#endif
