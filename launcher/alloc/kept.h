/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that an allocation keeps, as `drarun -n` uses them (docs/design/032-allocation.md): a file
 * in the allocation's folder says who they are and what was allocated to them. */
#ifndef DRARUN_LAUNCHER_KEPT_H
#define DRARUN_LAUNCHER_KEPT_H

#include <stdbool.h>
#include "drarun/error.h"
#include "launcher/job/request.h"

/* {"job", "namespace", "uid", "attempt", "document": the spec,
 *  "slicesUnknown", "slices": [...], "nodeLabels": {NODE: {...}}, "rankOrder": [...] or absent,
 *  "workers": [{"pod", "node", "address": among the pods, "dial": from here, "claims": [...],
 *               "lost": why, or absent}]} */
#define KEPT_FILE "kept.json"
#define KEPT_KEY_FILE "key"

struct kept;

/* The allocation of that folder is one of pods. */
bool kept_is_there(const char *folder);
/* The job runs on those pods: request->kept, and what follows from it. Errors name the worker that
 * is lost, if one is. */
int kept_use(const char *folder, struct job_request *request, struct drarun_error *err);
void kept_free(struct kept *kept);

#endif
