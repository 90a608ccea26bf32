/* SPDX-License-Identifier: Apache-2.0 */
/* Names that ranks publish: those of PMI-1 for all agents of the job, and those of PMIx, which
 * worker 0 keeps, as far as other jobs of the user may know them (user_names.h). */
#ifndef DRARUN_LAUNCHER_JOB_NAMES_H
#define DRARUN_LAUNCHER_JOB_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <event2/event.h>
#include "launcher/job/meet.h"
#include "lib/wire/wire.pb-c.h"

/* What ranks may have published at a time, in all, and the bytes of a value. */
#define JOB_NAMES_MAX 4096u
#define JOB_NAMES_VALUE_MAX (64u * 1024)

struct job_names_owner {
    /* The answer to a request that has waited. Borrowed. */
    void (*found)(void *arg, uint32_t worker, const Drarun__Wire__NameReply *reply);
    void *arg;
};

struct job_names;

/* self: how the PMIx namespaces of this job begin, "drarun.UID.ATTEMPT". */
struct job_names *job_names_new(struct event_base *base, const char *self,
                                const struct job_names_owner *owner,
                                const struct meet_owner *meet_owner);
void job_names_free(struct job_names *names);
/* A name exists once among the user's jobs. pmix: version of the libpmix that has packed the
 * values, and is to read them. False: the request waits, for owner.found, or wants no answer. What
 * the reply points to is borrowed until the next call. */
bool job_names_ask(struct job_names *names, uint32_t worker, const char *pmix,
                   const Drarun__Wire__NameRequest *request, Drarun__Wire__NameReply *ret_reply);
/* meet.h */
void job_names_meet(struct job_names *names, uint32_t worker, const char *pmix,
                    const Drarun__Wire__MeetRequest *request);
/* The job ends with status 0: those that it is connected with need not end of it. */
void job_names_leave(struct job_names *names);

#endif
