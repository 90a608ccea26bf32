/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan wants to know of the cluster beside the claims: ResourceSlices and Nodes' labels,
 * read when the job begins, since drivers take some attributes back when a NIC moves into a pod,
 * and again for what has come since. Both belong to the whole cluster; where we may not read them
 * the plan does without. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FACTS_H
#define DRARUN_LAUNCHER_CLUSTER_FACTS_H

#include "lib/dra/slices.h"
#include "launcher/cluster/client/cluster.h"

struct facts;

/* Begins to read. */
int facts_new(struct cluster *cluster, struct facts **ret_facts, struct drarun_error *err);
/* The same once both are answered: what is known of a pool stays, unless it has got devices. What
 * facts_slices and facts_node_labels gave before is not valid any more. */
int facts_read_again(struct facts *facts, struct drarun_error *err);
void facts_free(struct facts *facts);
DEFINE_CLEANUP(struct facts, facts_free)

/* Both are answered. */
bool facts_are_read(const struct facts *facts);
/* Runs the loop until they are. */
void facts_wait(struct facts *facts);

/* NULL: not to be had, and facts_missing says why. Borrowed. */
const struct slices *facts_slices(const struct facts *facts);
const json_t *facts_node_labels(const struct facts *facts); /* node name -> labels */
/* "" when all is there. */
const char *facts_missing(const struct facts *facts);

#endif
