/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons of a job's Events, of a DraJob's conditions and of its status.reason: one list, of
 * which docs/messages.md and `drarun help REASON` are made. The reason of an end is its cause
 * (reason_of_words). Pure. */
#ifndef DRARUN_JOBS_REASON_H
#define DRARUN_JOBS_REASON_H

#include <stdbool.h>
#include <stddef.h>

enum reason {
    REASON_NONE = 0,
    REASON_WAITING,
    REASON_RELEASED,
    REASON_STARTED,
    REASON_SILENT,
    REASON_TCP_FALLBACK,
    REASON_RESTARTED,
    REASON_DOCUMENT_REFUSED,
    REASON_CREATED,
    REASON_RESUMED,
    REASON_INVALID_SPEC,
    REASON_CANNOT_CREATE,
    REASON_SUCCEEDED,
    REASON_FAILED,
    REASON_CANCELLED,
    REASON_ACCEPTED,
    REASON_CHECKED,
    REASON_SUBMITTING,
    REASON_NAME_IN_USE,
    REASON_SUSPENDED,
    REASON_SUSPENDING,
    REASON_NOT_SUSPENDED,
    REASON_PENDING,
    REASON_QUEUED,
    REASON_PLACING,
    REASON_PULLING,
    REASON_STARTING,
    REASON_RELEASING,
    REASON_ALLOCATED,
    REASON_RUNNING,
    REASON_CLIENT_LOST,
    REASON_LAUNCHER_FAILED,
    REASON_LAUNCHER_NOT_STARTED,
    REASON_LAUNCHER_COMPLETED,
    REASON_LAUNCHER_SILENT,
    REASON_JOB_DELETED,
    REASON_COUNT,
};

enum reason_place {
    REASON_OF_LAUNCHER = 1, /* Events of the launcher's Job, or of the job's ConfigMap */
    REASON_OF_DRAJOB = 2,   /* Events of the DraJob */
    REASON_OF_STATUS = 4,   /* conditions, status.state and status.reason of the DraJob */
};

const char *reason_name(enum reason reason); /* "TcpFallback" */
unsigned int reason_places(enum reason reason);
bool reason_is_warning(enum reason reason);
/* One sentence each without a full stop: what it means, and what to do ("nothing"). */
const char *reason_meaning(enum reason reason);
const char *reason_cure(enum reason reason);

#define REASON_SIZE 64
/* "node-lost" is NodeLost: what Kubernetes takes as a reason. */
void reason_of_words(const char *words, char *text, size_t size);

#endif
