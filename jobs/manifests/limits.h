/* SPDX-License-Identifier: Apache-2.0 */
/* The API's limits on what a job creates, checked before anything is built, so that the user reads
 * of his spec's field and not of the server's. Limits of claims and slices: k8s.io/api resource/v1
 * types.go (docs/design/010-claims.md). Pure. */
#ifndef DRARUN_JOBS_LIMITS_H
#define DRARUN_JOBS_LIMITS_H

#include "drarun/error.h"
#include "jobs/spec/spec.h"

#define LIMIT_CLAIM_RESULTS 32u /* devices that one claim can hold */
#define LIMIT_CLAIM_REQUESTS 32u
#define LIMIT_CLAIM_CONSTRAINTS 32u
#define LIMIT_SELECTORS 32u
#define LIMIT_CEL_BYTES 10240u
#define LIMIT_OPAQUE_BYTES 10240u
#define LIMIT_DRIVER_NAME 63u
#define LIMIT_LABEL 63u      /* bytes of a DNS label, a label's value, a pod's host name */
#define LIMIT_SUBDOMAIN 253u /* bytes of a class's or an object's name */
#define LIMIT_ANNOTATIONS 262144u
#define LIMIT_DOCUMENT 524288u /* half of a ConfigMap's data: the other half is the status */

/* -EINVAL with the field, the limit and what to do; kind DRARUN_ERR_SPEC. */
int limits_check(const struct job_spec *spec, struct drarun_error *err);

/* Is it an annotation by which Kueue starts only some of a job's workers? */
bool limits_has_other_size(const char *annotation);

#endif
