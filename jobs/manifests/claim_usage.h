/* SPDX-License-Identifier: Apache-2.0 */
/* What a ResourceQuota charges for a ResourceClaim, as the API server's evaluator of claims. Pure.
 */
#ifndef DRARUN_JOBS_CLAIM_USAGE_H
#define DRARUN_JOBS_CLAIM_USAGE_H

#include <jansson.h>
#include "drarun/error.h"

/* Adds resource as quotas name it -> a real number to the object usage. claim: its spec, of v1. */
int claim_usage(const json_t *claim, json_t *usage, struct drarun_error *err);

#endif
