/* SPDX-License-Identifier: Apache-2.0 */
/* PMI-1 for the ranks of one group on one agent: a socket pair to each rank, the barrier over all
 * agents. Ranks are named by their numbers in the job here, and in their group to themselves. Loop
 * thread only; the protocol itself is pmi1.h's. */
#ifndef DRARUN_WORKER_PMI1_HOST_H
#define DRARUN_WORKER_PMI1_HOST_H

#include <event2/event.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "worker/job/agent_job.h"
#include "worker/tree/coll.h"
#include "worker/pmi1/pmi1.h"
#include "worker/job/spawn_request.h"
#include "worker/host/topology.h"

struct pmi1_host_owner {
    void (*connected)(void *arg, uint32_t rank);
    /* It closed its connection without having finalized. */
    void (*lost)(void *arg, uint32_t rank);
    void (*finalized)(void *arg, uint32_t rank);
    /* It waits in PMI_Init for a debugger, since its group was started so. */
    void (*waits)(void *arg, uint32_t rank);
    void (*abort)(void *arg, uint32_t rank, int status, const char *text);
    /* It asks for more ranks; pmi1_host_spawned answers. request is borrowed. */
    void (*spawn)(void *arg, const struct spawn_request *request);
    /* As pmi1_owner.name; pmi1_host_named answers. */
    void (*name)(void *arg, uint32_t rank, enum pmi1_name what, const char *service,
                 const char *port);
    /* A barrier cannot end, or its values are incomplete: the job must end. */
    void (*failed)(void *arg, const struct drarun_error *err);
    void *arg;
};

struct pmi1_host;

/* job, group, coll, topology and session_dir are borrowed. */
struct pmi1_host *pmi1_host_new(struct event_base *base, const struct agent_job *job,
                                const struct rank_group *group, struct coll *coll,
                                struct topology *topology, const char *session_dir,
                                const struct pmi1_host_owner *owner, struct drarun_error *err);
void pmi1_host_free(struct pmi1_host *host);
/* A barrier of all its ranks here has not ended: it may not be freed before the job's collectives.
 */
bool pmi1_host_in_barrier(const struct pmi1_host *host);

/* Opens the rank's connection; *ret_fd is the rank's end, the caller's, close-on-exec. Sets PMI_FD
 * and the other variables of PMI-1 in env. */
int pmi1_host_open(struct pmi1_host *host, uint32_t rank, struct strlist *env, int *ret_fd,
                   struct drarun_error *err);
/* What the rank waits for since pmi1_host_owner.spawn. */
void pmi1_host_spawned(struct pmi1_host *host, uint32_t number, bool good);
/* The same since pmi1_host_owner.name. */
void pmi1_host_named(struct pmi1_host *host, uint32_t number, bool good, const char *port);
/* Ranks that wait for a debugger go on, and none waits from now on. */
void pmi1_host_release(struct pmi1_host *host);
/* Reads what the rank has sent so far: before judging a rank that ended. */
void pmi1_host_drain(struct pmi1_host *host, uint32_t number);

#endif
