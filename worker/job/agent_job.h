/* SPDX-License-Identifier: Apache-2.0 */
/* The job as one agent knows it, from the launcher's Launch message: checked once, then read-only.
 */
#ifndef DRARUN_WORKER_AGENT_JOB_H
#define DRARUN_WORKER_AGENT_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/ranks/binding.h"
#include "jobs/ranks/rankmap.h"
#include "lib/base/strlist.h"
#include "lib/wire/wire.pb-c.h"
#include "worker/job/rank_group.h"

#define AGENT_RADIX_MAX 1024u

struct agent_job {
    Drarun__Wire__Launch *wire; /* as received, checked; owned */
    struct rankmap map;         /* all ranks and programs, of all groups */
    struct rank_group **groups; /* by index: the Launch's, then those that come later, and stay */
    uint32_t group_count;
    uint32_t launched;              /* groups of the Launch, at least one */
    const Drarun__Wire__App **apps; /* by program of the job; borrowed from wire and groups; without
                                       words where the group is released */
    struct bind_policy bind;
    uint32_t worker; /* this agent's index */
    uint32_t *local; /* its ranks, ascending, of all groups */
    uint32_t local_count;
    bool pmix;        /* PMIx and PMI-1 are served */
    bool mpirun;      /* rank 0 is the user's mpirun */
    const char *host; /* this worker's, borrowed from wire */
    char **nodes;     /* by worker: its host, made unique, since to PMIx each worker is a node */
};

/* Takes the message in either case. -EPROTO for what cannot be, kind DRARUN_ERR_SPEC. */
int agent_job_init_take(struct agent_job *job, Drarun__Wire__Launch *launch,
                        struct drarun_error *err);
void agent_job_done(struct agent_job *job);

/* Takes the message in either case; its group is the last one then. -EPROTO for what cannot be. The
 * job is unchanged on failure. */
int agent_job_add_group_take(struct agent_job *job, Drarun__Wire__Group *wire,
                             struct drarun_error *err);
/* Undoes the last agent_job_add_group_take. -ENOMEM. */
int agent_job_drop_group(struct agent_job *job);
/* The ranks of this spawned group have all ended, everywhere: their numbers stay theirs, and what
 * they were started with is forgotten. */
void agent_job_release_group(struct agent_job *job, struct rank_group *group);
/* The ranks of the Launch, and those of them that are here. */
uint32_t agent_job_launched_ranks(const struct agent_job *job);
uint32_t agent_job_launched_here(const struct agent_job *job);
/* The Launch's ranks of all workers on this one's CPUs (Worker.cpus), also those that have ended:
 * as their slots are counted (Launch.local_first_slot). */
uint32_t agent_job_ranks_on_cpus(const struct agent_job *job);
/* Of a group that comes later, the ranks of workers before this one that have its CPUs. */
uint32_t agent_job_group_before(const struct agent_job *job, const struct rank_group *group);
/* Ranks of the other workers on this one's CPUs, or of its host, without groups whose ranks have
 * all ended. */
uint32_t agent_job_others_on_cpus(const struct agent_job *job);
uint32_t agent_job_others_on_host(const struct agent_job *job);
/* How many ranks the user has allowed in all. */
uint32_t agent_job_universe(const struct agent_job *job);
/* The group of a rank of the job. */
const struct rank_group *agent_job_group_of(const struct agent_job *job, uint32_t rank);
/* By its PMIx namespace; NULL: none of this job, or one that is released. */
const struct rank_group *agent_job_group_named(const struct agent_job *job, const char *nspace);

/* argv of a program, NULL-terminated; borrowed strings, the array is the caller's. NULL without
 * memory. */
char **agent_job_argv(const struct agent_job *job, uint32_t app);

/* Index among this agent's ranks, or -1. */
int64_t agent_job_local_index(const struct agent_job *job, uint32_t rank);

#endif
