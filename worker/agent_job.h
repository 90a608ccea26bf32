/* SPDX-License-Identifier: Apache-2.0 */
/* The job as one agent knows it, from the launcher's Launch message: checked once, then read-only.
 */
#ifndef DRARUN_WORKER_AGENT_JOB_H
#define DRARUN_WORKER_AGENT_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/binding.h"
#include "jobs/rankmap.h"
#include "lib/base/strlist.h"
#include "lib/wire/wire.pb-c.h"

#define AGENT_RADIX_MAX 1024u

struct agent_job {
    Drarun__Wire__Launch *wire; /* as received, checked; owned */
    struct rankmap map;
    struct bind_policy bind;
    uint32_t worker; /* this agent's index */
    uint32_t *local; /* its ranks, ascending */
    uint32_t local_count;
    bool pmix;        /* PMIx and PMI-1 are served */
    bool mpirun;      /* rank 0 is the user's mpirun */
    char nspace[256]; /* "drarun.UID.ATTEMPT" (docs/design/000-names.md) */
    const char *host; /* this worker's, borrowed from wire */
    char **nodes;     /* by worker: its host, made unique, since to PMIx each worker is a node */
};

/* Takes the message in either case. -EPROTO for what cannot be, kind DRARUN_ERR_SPEC. */
int agent_job_init_take(struct agent_job *job, Drarun__Wire__Launch *launch,
                        struct drarun_error *err);
void agent_job_done(struct agent_job *job);

/* argv of a program, NULL-terminated; borrowed strings, the array is the caller's. NULL without
 * memory. */
char **agent_job_argv(const struct agent_job *job, uint32_t app);

/* More ranks on this machine than CPUs that the agent may use. */
bool agent_job_oversubscribed(const struct agent_job *job);

/* Index among this agent's ranks, or -1. */
int64_t agent_job_local_index(const struct agent_job *job, uint32_t rank);

#endif
