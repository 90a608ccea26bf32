/* SPDX-License-Identifier: Apache-2.0 */
/* The Launch messages of a job: the same for every agent but for a few fields. */
#ifndef DRARUN_LAUNCHER_LAUNCH_MESSAGE_H
#define DRARUN_LAUNCHER_LAUNCH_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/derive/plan.h"
#include "jobs/ranks/rankmap.h"
#include "launcher/job/request.h"
#include "launcher/programs/remote.h"
#include "lib/wire/wire.pb-c.h"

/* Where rank 0 of a world can listen: MASTER_ADDR and MASTER_PORT. */
struct launch_master {
    char address[REMOTE_ADDRESS_SIZE];
    uint16_t port;
};

struct rlimit;

/* All borrowed for the life of the message. */
struct launch_facts {
    const struct job_request *request;
    const struct rankmap *map;
    const char *uid;
    uint32_t attempt;
    char *const *env; /* what every rank inherits; NULL: the agent's own environment */
    int32_t stdin_rank;
    uint32_t universe;                   /* slots of all workers; 0: as many as ranks */
    bool hold;                           /* agents stay for ranks that are spawned */
    bool start;                          /* without waiting for Start */
    bool here;                           /* all agents are on this machine */
    const struct rlimit *files;          /* RLIMIT_NOFILE as it was given to us */
    const struct launch_master *masters; /* of the job; with request.own_worlds one by program */
};

struct launch_message;

/* Warns of -x NAME without a value. Draws the secret of the PMIx namespace. NULL without memory. */
struct launch_message *launch_message_new(const struct launch_facts *facts,
                                          struct drarun_error *err);
void launch_message_free(struct launch_message *message);

/* What the plans derived for the ranks goes along: their workers are the job's in order, one plan
 * for each role. A rank is bound to the CPUs of its GPU, unless Launch.bind says otherwise. Nothing
 * of the plans is kept. -ENOMEM. */
int launch_message_plan(struct launch_message *message, const struct plan *plans, size_t count);

/* Agents set this variable to folders of theirs, and send the files in them at the end. Borrowed.
 */
void launch_message_collect(struct launch_message *message, const char *variable);

/* Where an agent is: for every worker, before launch_message_for. Texts are borrowed. cpus: as
 * bind_number_cpus has it. */
void launch_message_worker(struct launch_message *message, uint32_t worker, const char *host,
                           const char *address, uint32_t cpus);
/* Fills the envelope with the message for one agent: the launch itself for worker 0, which the
 * agents hand on among themselves, an assignment for the others. prepare_ms: how long they may take
 * to be prepared. Valid until the next call. */
void launch_message_for(struct launch_message *message, uint32_t worker, const char *session_dir,
                        int64_t prepare_ms, Drarun__Wire__Envelope *ret_envelope);

#endif
