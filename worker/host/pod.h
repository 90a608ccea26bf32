/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker of which job a pod is, as its own environment says (docs/design/010-claims.md): an
 * agent serves nobody who wants another one. */
#ifndef DRARUN_WORKER_POD_H
#define DRARUN_WORKER_POD_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/wire/wire.pb-c.h"

struct pod {
    char job[65];    /* uid; "": not known */
    char name[64];   /* the job's; "": not known */
    char node[254];  /* "" */
    int64_t worker;  /* index; -1: not known */
    int64_t attempt; /* -1: not known */
    bool kept;       /* for one job after another: UID.NAME each (docs/design/032-allocation.md) */
};

/* Takes DRARUN_JOB, DRARUN_JOB_NAME, DRARUN_NODE, DRARUN_ATTEMPT and DRARUN_WORKER (else
 * JOB_COMPLETION_INDEX, which stays) out of the environment, so that no rank takes them for an
 * outer launcher's. Kind DRARUN_ERR_USAGE for what is no number. Before any thread exists. */
int pod_take(struct pod *ret_pod, struct drarun_error *err);

/* From now on our own lines are JSON, and say which worker it is; pod is borrowed for the life of
 * the process. Before any thread exists. */
void pod_log(const struct pod *pod);

/* Leaves the reason of the agent's end where the kubelet puts it into the container's status. */
void pod_tell_end(const char *text);

/* Refuses the hello of another job, attempt or (from a launcher) for another worker; the sentence
 * says both. */
int pod_check(const struct pod *pod, const Drarun__Wire__Hello *hello, struct drarun_error *err);

#endif
