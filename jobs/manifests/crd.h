/* SPDX-License-Identifier: Apache-2.0 */
/* The CustomResourceDefinition of DraJob, made of the job spec's schema
 * (docs/schema/drajob-v1alpha1.json) and of what crd.json adds: names, columns, the status, and
 * rules for what a structural schema cannot say (docs/design/035-drajob-objects.md). Pure. */
#ifndef DRARUN_JOBS_CRD_H
#define DRARUN_JOBS_CRD_H

#include <jansson.h>
#include "drarun/error.h"

/* The CustomResourceDefinition; the caller's. -ENOTSUP: the schema says something for which there
 * is neither a counterpart nor a rule. */
int crd_manifest(json_t **ret_crd, struct drarun_error *err);

/* The same of other texts, for tests: schema and additions. */
int crd_make(const json_t *schema, const json_t *additions, json_t **ret_crd,
             struct drarun_error *err);

#endif
