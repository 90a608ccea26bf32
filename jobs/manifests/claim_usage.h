/* SPDX-License-Identifier: Apache-2.0 */
/* What a ResourceQuota charges for a ResourceClaim, as the API server's evaluator of claims. Pure.
 */
#ifndef DRARUN_JOBS_CLAIM_USAGE_H
#define DRARUN_JOBS_CLAIM_USAGE_H

#include <jansson.h>
#include "drarun/error.h"

/* Adds resource as quotas name it -> a real number to the object usage. claim: its spec, of v1;
 * classes: an array of DeviceClasses, which may say that their devices count as an extended
 * resource too; minor: of Kubernetes, as in struct predict_cluster. */
int claim_usage(const json_t *claim, const json_t *classes, unsigned minor, json_t *usage,
                struct drarun_error *err);

#endif
