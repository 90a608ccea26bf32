/* SPDX-License-Identifier: Apache-2.0 */
/* From a placed gang to a request for the job engine (launcher/job/job.h): which programs, how many
 * ranks, where the agents listen. */
#ifndef DRARUN_LAUNCHER_CLUSTER_RANKS_H
#define DRARUN_LAUNCHER_CLUSTER_RANKS_H

#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "launcher/job/request.h"

struct ranks {
    struct request_program program;
    struct strlist argv, addresses, names, nodes, look_for, scripts;
    struct request_pods pods;
    struct job_request request;
};

struct ranks_facts { /* borrowed for the life of the ranks */
    const struct job_spec *spec;
    const struct pod_state *workers;
    uint32_t gpus;              /* of worker 0, for ranksPerWorker; 0: none */
    const struct strlist *args; /* in place of the command's arguments; empty: the spec's */
};

/* pods: all but workers, addresses, pods, nodes, look_for, scripts and grace_ms, which are filled
 * in. Errors have kind DRARUN_ERR_SPEC. */
int ranks_build(const struct ranks_facts *facts, const struct request_pods *pods,
                struct ranks *ret_ranks, struct drarun_error *err);
void ranks_done(struct ranks *ranks);

#endif
