/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's connections to its neighbours in the tree: it dials its children and is dialled by its
 * parent, with the job's key like the launcher. Loop thread only. */
#ifndef DRARUN_WORKER_PEERS_H
#define DRARUN_WORKER_PEERS_H

#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "lib/wire/channel.h"
#include "worker/job/agent_job.h"
#include "worker/tree/tree.h"

struct tls_context;

struct peers_owner {
    /* A message for this agent from the neighbour `from`: Collective, or Routed to this agent
     * (those to others have been passed on). */
    void (*message)(void *arg, uint32_t from, const Drarun__Wire__Envelope *message);
    /* Every neighbour is connected. Called once. */
    void (*ready)(void *arg);
    /* A neighbour could not be reached or was lost: the job cannot go on. */
    void (*lost)(void *arg, const struct drarun_error *err);
    void *arg;
    unsigned int silence_ms; /* without a sign of a neighbour's machine it is lost */
};

struct peers;

/* tls: for dialling, NULL when the job has one worker. job and tree are borrowed. */
struct peers *peers_new(struct event_base *base, const struct agent_job *job,
                        const struct tree *tree, struct tls_context *tls,
                        const struct peers_owner *owner);
void peers_free(struct peers *peers);

/* Starts dialling the children; ready or lost will be called (ready perhaps before this returns).
 */
int peers_connect(struct peers *peers, struct drarun_error *err);
/* The parent has dialled and said hello; the channel is taken. */
int peers_parent_take(struct peers *peers, struct channel *channel, uint32_t worker,
                      struct drarun_error *err);

/* To the neighbour `worker`. */
void peers_send(struct peers *peers, uint32_t worker, const Drarun__Wire__Envelope *message);
/* To any agent but this one, along the tree. */
void peers_route(struct peers *peers, Drarun__Wire__Routed *message);
/* To all agents but this one, each once; the destination is set here. */
void peers_broadcast(struct peers *peers, Drarun__Wire__Routed *message);

#endif
