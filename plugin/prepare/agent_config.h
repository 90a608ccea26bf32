/* SPDX-License-Identifier: Apache-2.0 */
/* The opaque parameters by which a claim asks for drarun's agent in its containers:
 *
 *     {"apiVersion": "drarun.dev/v1alpha1", "kind": "WorkerAgent", "agent": "v1-pmix-5.0.7",
 *      "sharedMemory": {"size": "8Gi"}}
 *
 * agent: which one (lib/base/agent_offer.h). sharedMemory: a tmpfs at /dev/shm; without its size it
 * has what the pod may use of memory, and without sharedMemory there is none. Pure. */
#ifndef DRARUN_PLUGIN_PREPARE_AGENT_CONFIG_H
#define DRARUN_PLUGIN_PREPARE_AGENT_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/agent_offer.h"
#include "lib/doc/reader.h"

struct agent_config {
    char agent[AGENT_OFFER_SIZE];
    bool shm;
    int64_t shm_bytes; /* 0: not said */
};

/* Whether the parameters are of this kind, rather than a device's. */
bool agent_config_is(const json_t *parameters);
/* Findings are the reader's, which must be strict. */
void agent_config_read(const struct reader_node *node, struct agent_config *ret_config);

/* Bytes of memory that the containers of a Pod may use together: its own limit, or the sum of its
 * containers', when each has one; 0: there is none. As the kubelet sizes a volume in memory
 * (pkg/volume/emptydir, calculateEmptyDirMemorySize). */
int64_t agent_config_pod_memory(const json_t *pod);

#endif
