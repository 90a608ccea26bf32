/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of a node that have not ended, as the API server reports them, so that Prepare need not
 * ask for one. What is read of a pod (node_pods_trim) is settled when it is bound to its node; a
 * pod is therefore the right one if it has the UID, however old the news. One that is not here is
 * to be asked for. Loop's thread. */
#ifndef DRARUN_PLUGIN_PREPARE_NODE_PODS_H
#define DRARUN_PLUGIN_PREPARE_NODE_PODS_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"
#include "lib/kube/client.h"

struct node_pods;

int node_pods_new(struct kube_client *client, const char *node, struct node_pods **ret_pods,
                  struct drarun_error *err);
void node_pods_free(struct node_pods *pods);
DEFINE_CLEANUP(struct node_pods, node_pods_free)

/* Borrowed until the loop's next turn; NULL: not known. pods may be NULL. */
const json_t *node_pods_find(const struct node_pods *pods, const char *namespace_, const char *name,
                             const char *uid);

/* Leaves of a pod what claimed.h and agent_config.h read: its metadata alone for one without
 * claims, and for one of which that were thousands of values. Pure. */
void node_pods_trim(json_t *pod);

#endif
