/* SPDX-License-Identifier: Apache-2.0 */
/* How the agent comes into a worker's container, by the pod as it was made
 * (jobs/manifests/pod_merge.c, docs/design/024-agent-by-claim.md). Pure. */
#ifndef DRARUN_JOBS_AGENT_WAY_H
#define DRARUN_JOBS_AGENT_WAY_H

#include <jansson.h>
#include "lib/base/buf.h"

/* "by its claim", "copied by an init container of IMAGE", "by an image volume of IMAGE" */
void agent_way_text(const json_t *pod, struct buf *out);

#endif
