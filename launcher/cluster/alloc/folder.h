/* SPDX-License-Identifier: Apache-2.0 */
/* What `drarun -n` finds of an allocation (launcher/alloc/kept.h): a folder that only its owner may
 * enter. Private to `drarun alloc FILE`. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_ALLOCATE_FOLDER_H
#define DRARUN_LAUNCHER_CLUSTER_ALLOCATE_FOLDER_H

#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "launcher/cluster/client/board.h"
#include "launcher/cluster/client/cluster.h"

struct allocate_folder;

struct allocate_facts { /* borrowed, all but claims as long as the folder */
    struct cluster *cluster;
    const struct job_spec *spec;
    const char *namespace, *uid;
    const char *key;     /* 64 hexadecimal digits */
    const char *through; /* as cluster_alloc has it */
    const json_t *doc;   /* the status document */
    uint32_t attempt;
    struct board *board; /* in step with the cluster: every worker is up */
};

/* Reads the slices, finds out how the agents are reached, and writes the folder. Runs the loop. */
int allocate_folder_new(const struct allocate_facts *facts, struct allocate_folder **ret_folder,
                        struct drarun_error *err);
/* Takes it away, and ends what goes through the API server. NULL is fine. */
void allocate_folder_free(struct allocate_folder *folder);
const char *allocate_folder_path(const struct allocate_folder *folder);
/* Agents are reached through the API server. */
bool allocate_folder_is_far(const struct allocate_folder *folder);

/* The board has changed: a worker that is lost is said, and written down for the jobs to come. */
int allocate_folder_look(struct allocate_folder *folder, struct drarun_error *err);

#endif
