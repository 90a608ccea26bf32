/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods of a job a node takes, leaving devices by claim aside: what the scheduler's plugins
 * NodeUnschedulable, TaintToleration, NodeAffinity and NodeResourcesFit look at, on a node without
 * others' pods. Pure. */
#ifndef DRARUN_JOBS_NODE_FIT_H
#define DRARUN_JOBS_NODE_FIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "drarun/error.h"
#include "lib/dra/predict.h"
#include "lib/base/cleanup.h"

struct node_fit;

/* nodes: an array of Nodes; pod: the spec of one of the job's pods. Both must outlive it. -EINVAL:
 * an amount that is no quantity. */
int node_fit_new(const json_t *nodes, const json_t *pod, struct node_fit **ret_fit,
                 struct drarun_error *err);
/* Nodes that have none of an extended resource may have devices of a class that serves it: such a
 * resource is not looked at there. fit may be NULL. classes must outlive it; minor: as in struct
 * predict_cluster. */
void node_fit_use_classes(struct node_fit *fit, const json_t *classes, unsigned minor);
/* Such a resource on nodes that have none of it, beside others that have: nodes: node -> how many
 * devices of the class it has. */
int node_fit_use_devices(struct node_fit *fit, const char *resource, json_t *nodes,
                         struct drarun_error *err);
/* What one of the pods requests: resource -> a real number, borrowed. */
const json_t *node_fit_request(const struct node_fit *fit);
void node_fit_free(struct node_fit *fit);
DEFINE_CLEANUP(struct node_fit, node_fit_free)

/* Whether nodeSelector and required nodeAffinity of the pod (its spec) choose the node, which may
 * have metadata alone. */
bool node_fit_is_chosen(const json_t *pod, const json_t *node);

#define NODE_FIT_WHY PREDICT_WHY

/* Pods like `pod` (its spec) that the job has already, one on each worker's node: what they request
 * is used. -EINVAL as above. */
int node_fit_add_pods(struct node_fit *fit, const json_t *pod, const struct predict_worker *workers,
                      uint32_t count, struct drarun_error *err);

/* The most pods of the job that fit on the node, UINT32_MAX where nothing is known of it. ret_why:
 * what keeps the next one away, as "taint nvidia.com/gpu not tolerated" or "too little cpu", cut to
 * fit; "" for nothing. */
uint32_t node_fit_room(const struct node_fit *fit, const char *node, char ret_why[NODE_FIT_WHY]);

#endif
