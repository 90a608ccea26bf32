/* SPDX-License-Identifier: Apache-2.0 */
/* How the agent comes into a worker's container, by the pod as it was made
 * (jobs/manifests/pod_merge.c, docs/design/024-agent-by-claim.md). Pure. */
#ifndef DRARUN_JOBS_AGENT_WAY_H
#define DRARUN_JOBS_AGENT_WAY_H

#include <jansson.h>
#include <stdbool.h>
#include "jobs/spec/spec.h"
#include "lib/base/buf.h"

/* Of Kubernetes 1.MINOR, from which pods may have image volumes unless a gate is off: the API
 * server's and the kubelets'. */
#define IMAGE_VOLUME_MINOR 35

/* Whether an init container must copy the agent: a node that may get a worker of the role cannot
 * mount images, since its kubelet is older than 1.IMAGE_VOLUME_MINOR, or its containerd than 2.1.
 * nodes: an array of whole Nodes. What is not known of a node does not count. */
bool agent_way_is_copy(const json_t *nodes, const struct spec_role *role);

/* "by its claim", "copied by an init container of IMAGE", "by an image volume of IMAGE" */
void agent_way_text(const json_t *pod, struct buf *out);

#endif
