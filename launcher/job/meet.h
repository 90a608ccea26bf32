/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of ranks of several jobs of one user on one machine (docs/design/037-spawn.md). Each
 * job publishes its part as a name for the others (user_names.h), and reads theirs. Jobs that are
 * connected end together. Loop thread only. */
#ifndef DRARUN_LAUNCHER_JOB_MEET_H
#define DRARUN_LAUNCHER_JOB_MEET_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "launcher/job/user_names.h"
#include "lib/wire/wire.pb-c.h"

struct meet_owner {
    /* The answer to what the agent of this worker has asked. Borrowed. */
    void (*met)(void *arg, uint32_t worker, const Drarun__Wire__MeetReply *reply);
    /* A job that this one is connected with has not ended well. */
    void (*failed)(void *arg, const struct drarun_error *err);
    void *arg;
};

struct meets;

/* user is borrowed. self: how the PMIx namespaces of this job begin, "drarun.UID.ATTEMPT". NULL
 * without memory. */
struct meets *meets_new(struct user_names *user, const char *self, const struct meet_owner *owner);
void meets_free(struct meets *meets);

/* Other jobs may find this one by its namespaces from now on; before they learn of one. */
int meets_announce(struct meets *meets, struct drarun_error *err);
/* pmix: version of the agent's libpmix. unseen: why it would not be seen what other jobs do, so
 * that none can be awaited; code 0: it will be. owner.met answers, perhaps before this returns. */
void meets_ask(struct meets *meets, uint32_t worker, const char *pmix,
               const Drarun__Wire__MeetRequest *request, const struct drarun_error *unseen);
/* Something may have changed. */
void meets_look(struct meets *meets);
/* Other jobs are awaited, or their ends: meets_look is to be called when something has changed. */
bool meets_await(const struct meets *meets);

#endif
