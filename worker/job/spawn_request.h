/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank asks for with MPI_Comm_spawn, as it becomes known from PMIx or PMI-1, on its way to
 * the launcher. */
#ifndef DRARUN_WORKER_SPAWN_REQUEST_H
#define DRARUN_WORKER_SPAWN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/strlist.h"
#include "lib/wire/wire.pb-c.h"

/* One program of it. */
struct spawn_program {
    struct strlist argv;
    struct strlist env;    /* "NAME=VALUE" */
    struct strlist hosts;  /* none: any */
    struct strlist preput; /* "KEY=VALUE" */
    struct strlist search; /* directories, before PATH */
    uint32_t count;
    char *wd;   /* NULL: not said */
    char *bind; /* the same */
};

#define SPAWN_PROGRAMS_MAX 1024u

struct spawn_request {
    uint32_t rank; /* of the job, who asks */
    bool oversubscribe;
    bool unawaited; /* nobody waits for its ranks to connect */
    Drarun__Wire__StopAt stop_at;
    struct spawn_program *programs;
    size_t count;
};

struct spawn_request *spawn_request_new(uint32_t rank);
void spawn_request_free(struct spawn_request *request);
/* One more program; moves the others. NULL: out of memory, or too many. */
struct spawn_program *spawn_request_add(struct spawn_request *request);

/* What an info key of MPI_Comm_spawn asks for ("host", "wdir", "bind", "env", "path"); an unknown
 * one is ignored, as MPI wants. -EINVAL: not this value; -ENOMEM. */
int spawn_request_info(struct spawn_request *request, struct spawn_program *program,
                       const char *key, const char *value);

/* Looks for each program without a slash in its directories, the absolute ones of this machine, and
 * replaces its name by the path that is found. A child on another machine gets the same path.
 * -ENOMEM. */
int spawn_request_find(struct spawn_request *request);

/* The message, which borrows of the request; spawn_message_free. NULL without memory. */
Drarun__Wire__SpawnRequest *spawn_message_new(const struct spawn_request *request, uint64_t id);
void spawn_message_free(Drarun__Wire__SpawnRequest *wire);

#endif
