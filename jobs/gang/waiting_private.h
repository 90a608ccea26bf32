/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of waiting.c: what one worker waits for, and what devices are missing. */
#ifndef DRARUN_JOBS_WAITING_PRIVATE_H
#define DRARUN_JOBS_WAITING_PRIVATE_H

#include "jobs/gang/waiting.h"

/* What one worker waits for; text stays empty when it waits for nothing. */
struct worker_wait {
    struct buf text;
    const char *node;   /* borrowed from the state */
    const char *pod;    /* which the kubelet cannot start, borrowed likewise; NULL: no such thing */
    const char *advice; /* what to do about it; NULL: nothing is known */
    size_t same; /* bytes of text from its beginning that no reason or message of others changes */
    int64_t since_ms;
    bool stuck;
};

/* missing: what devices_missing gave, or NULL. */
void worker_wait(const struct waiting_input *input, uint32_t worker, const char *missing,
                 struct worker_wait *ret_wait);

/* The sentence, with the first of so many pods that it is about and what to do: " (pod a-w-0 and 3
 * more); advice". */
void worker_wait_text(const char *sentence, const char *pod, uint32_t count, const char *advice,
                      struct buf *out);

/* The scheduler has no word about it but that of its gang. */
bool waiting_asks_group(const struct pod_state *worker);

/* What the whole job waits for, before any worker can; false when nothing. */
bool job_wait(const struct waiting_input *input, struct worker_wait *ret_wait);

#endif
