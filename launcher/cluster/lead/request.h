/* SPDX-License-Identifier: Apache-2.0 */
/* From a placed gang to a request for the job engine (launcher/job/job.h): which programs, how many
 * ranks, where the agents listen. */
#ifndef DRARUN_LAUNCHER_CLUSTER_RANKS_H
#define DRARUN_LAUNCHER_CLUSTER_RANKS_H

#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "launcher/job/request.h"

struct ranks {
    struct request_program *programs; /* count of them, one for each role */
    struct strlist *argvs;            /* of them */
    size_t count;
    uint32_t role_ranks[SPEC_ROLES_MAX]; /* of all workers of a role */
    struct strlist addresses, hosts, names, nodes, look_for, scripts;
    struct request_pods pods;
    struct job_request request;
};

struct ranks_facts { /* borrowed for the life of the ranks */
    const struct job_spec *spec;
    const struct pod_state *workers;
    const uint32_t *gpus;       /* by role, of a worker, for ranksPerWorker; 0: none */
    const struct strlist *args; /* in place of the commands' arguments; NULL or empty: the spec's */
};

/* pods: all but workers, addresses, pods, nodes, look_for, scripts and grace_ms, which are filled
 * in. Errors have kind DRARUN_ERR_SPEC. */
int ranks_build(const struct ranks_facts *facts, const struct request_pods *pods,
                struct ranks *ret_ranks, struct drarun_error *err);
void ranks_done(struct ranks *ranks);

#endif
