/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod's template may hold, after the OpenAPI document of Kubernetes
 * (jobs/spec/pod_schema.txt, which scripts/pod-schema writes). Types are called as in the API:
 * "PodSpec", "Toleration". Pure; from any thread. */
#ifndef DRARUN_JOBS_POD_SCHEMA_H
#define DRARUN_JOBS_POD_SCHEMA_H

#include <jansson.h>
#include "lib/doc/reader.h"

/* Findings for all in the value that the API server would not decode: unknown keys, values of
 * another type, required fields that are missing; and for a word or a number that the field does
 * not take (what goes together is in jobs/manifests/pod_check.h). shape: a type, or "[TYPE]", a
 * list of them, or "{string}" and "{quantity}". False when there were findings. */
bool pod_schema_check(const struct reader_node *node, const char *shape);

/* The type has a field of that name. */
bool pod_schema_has(const char *type, const char *key);

/* A strategic merge patch, as kubectl's: a new reference to the base with the patch over it; NULL
 * when out of memory. Lists of items with a name are merged by it, other lists are replaced.
 * Neither is changed, and the result shares their parts. */
json_t *pod_schema_merge(const char *type, const json_t *base, const json_t *patch);

#endif
