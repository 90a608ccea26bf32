/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps pods off nodes that failed an earlier attempt. Pure. */
#ifndef DRARUN_JOBS_AVOID_NODE_H
#define DRARUN_JOBS_AVOID_NODE_H

#include <jansson.h>
#include <stddef.h>
#include "drarun/error.h"

#define AVOID_NODES_MAX 32 /* of one pod, which holds a requirement for each of them */

/* Adds to a pod's `spec` (of a Pod, or of a Job's template) that it must not run on the nodes:
 * required node affinity, matchFields metadata.name NotIn, in every one of its terms (any of which
 * suffices to the scheduler). The API takes one value a requirement. What the user wrote stays; a
 * node twice is once. -E2BIG beyond AVOID_NODES_MAX, -ENOMEM; the spec is unchanged then. */
int avoid_nodes(json_t *pod_spec, const char *const *nodes, size_t count, struct drarun_error *err);

#endif
