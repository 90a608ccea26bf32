/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that do not exist yet: what an autoscaler may add has no Node and no ResourceSlice, so that
 * a prediction without room is one of the nodes that are there. Pure. */
#ifndef DRARUN_JOBS_ABSENT_NODES_H
#define DRARUN_JOBS_ABSENT_NODES_H

#include <jansson.h>
#include <stdbool.h>
#include "lib/dra/predict.h"

/* Where cluster-autoscaler writes what its pools are, unless it is told otherwise. */
#define AUTOSCALER_NAMESPACE "kube-system"
#define AUTOSCALER_STATUS "cluster-autoscaler-status"

struct absent_nodes {
    const json_t *config_maps; /* array of ConfigMaps, of which AUTOSCALER_STATUS counts; NULL */
    const json_t *node_pools;  /* array of NodePools, of which Karpenter's count; NULL */
};

/* Some request's class admits no device at all that is published. */
bool absent_nodes_lack_class(const struct prediction *prediction);

/* Why the job may find room all the same, for people: classes that nobody publishes, pools that may
 * grow. claims: the job claims devices. NULL: nothing says so, no pool may grow, or there was no
 * memory. */
char *absent_nodes_words(const struct prediction *prediction, const struct absent_nodes *known,
                         bool claims);

#endif
