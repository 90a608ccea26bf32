/* SPDX-License-Identifier: Apache-2.0 */
/* PMI-1 for the ranks of one agent: a socket pair to each rank, the barrier over all agents. Loop
 * thread only; the protocol itself is pmi1.h's. */
#ifndef DRARUN_WORKER_PMI1_HOST_H
#define DRARUN_WORKER_PMI1_HOST_H

#include <event2/event.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "worker/agent_job.h"
#include "worker/coll.h"
#include "worker/topology.h"

struct pmi1_host_owner {
    void (*connected)(void *arg, uint32_t rank);
    /* It closed its connection without having finalized. */
    void (*lost)(void *arg, uint32_t rank);
    void (*finalized)(void *arg, uint32_t rank);
    void (*abort)(void *arg, uint32_t rank, int status, const char *text);
    void *arg;
};

struct pmi1_host;

/* job, coll, topology and session_dir are borrowed. */
struct pmi1_host *pmi1_host_new(struct event_base *base, const struct agent_job *job,
                                struct coll *coll, struct topology *topology,
                                const char *session_dir, const struct pmi1_host_owner *owner,
                                struct drarun_error *err);
void pmi1_host_free(struct pmi1_host *host);

/* Opens the rank's connection; *ret_fd is the rank's end, the caller's, close-on-exec. Sets PMI_FD
 * and its kin in env. */
int pmi1_host_open(struct pmi1_host *host, uint32_t rank, struct strlist *env, int *ret_fd,
                   struct drarun_error *err);
/* Reads what the rank has sent so far: before judging a rank that ended. */
void pmi1_host_drain(struct pmi1_host *host, uint32_t rank);

#endif
