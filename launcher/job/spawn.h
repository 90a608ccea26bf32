/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that a rank asks for while the job runs (docs/design/037-spawn.md): where they run is
 * decided here, and all agents are told. One request at a time; the others wait. */
#ifndef DRARUN_LAUNCHER_JOB_SPAWN_H
#define DRARUN_LAUNCHER_JOB_SPAWN_H

#include <stdint.h>
#include "lib/wire/wire.pb-c.h"

struct job;
struct agent;
struct job_spawn;

/* NULL without memory. */
struct job_spawn *job_spawn_new(struct job *job);
void job_spawn_free(struct job_spawn *spawn);

/* The ranks of all workers that the user has allowed. */
uint32_t job_spawn_universe(const struct job *job);

/* Takes the request out of the message. */
void job_spawn_asked(struct job_spawn *spawn, struct agent *agent, Drarun__Wire__Envelope *message);
void job_spawn_ready(struct job_spawn *spawn, struct agent *agent,
                     const Drarun__Wire__GroupReady *ready);
/* The first request has waited long enough for slots (job.spawning.room_clock). */
void job_spawn_room_over(struct job_spawn *spawn);
/* An agent, or a rank, has ended, or the job has come further: there may be room now, or nobody
 * left to wait for. */
void job_spawn_look(struct job_spawn *spawn);

#endif
