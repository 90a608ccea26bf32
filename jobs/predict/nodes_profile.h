/* SPDX-License-Identifier: Apache-2.0 */
/* Which machine nodes are, told from their labels and from what their devices publish, before any
 * of them is chosen. Pure. */
#ifndef DRARUN_JOBS_NODES_PROFILE_H
#define DRARUN_JOBS_NODES_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "jobs/profiles/profiles.h"
#include "lib/dra/slices.h"

struct nodes_profile {
    const struct profile *found; /* of all of the nodes, borrowed; NULL: not known */
    char why[256];               /* how it was recognised; or why it is not known */
};

/* Does the node count? devices: all that it publishes. */
typedef bool nodes_profile_fn(const json_t *node, const struct slice_device *devices, size_t count,
                              void *arg);

/* nodes: an array of Nodes; wanted: which of them are asked about. */
struct nodes_profile nodes_profile_find(const struct profiles *profiles, const json_t *nodes,
                                        const struct slices *slices, nodes_profile_fn *wanted,
                                        void *arg);

#endif
