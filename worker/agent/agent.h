/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: takes one job from one launcher, starts its ranks, serves them, reports their ends,
 * and leaves nothing behind. Everything on the loop's thread. */
#ifndef DRARUN_WORKER_AGENT_H
#define DRARUN_WORKER_AGENT_H

#include <event2/event.h>
#include "drarun/error.h"
#include "lib/wire/tls.h"
#include "worker/host/pod.h"

struct agent;

struct agent_options {
    int control_fd; /* connected to the launcher, or -1 */
    int listen_fd;  /* where launcher and parent dial, or -1; needs a key */
    const struct tls_key *key;
    const struct pod *pod; /* the agent is a pod's: it inspects it, and outlives a launcher; or NULL
                            */
    /* Called when the session directory is known and (NULL) when it is gone; for a guard process
     * that cleans up after a killed agent. May be NULL. */
    void (*session)(const char *dir, void *arg);
    void *session_arg;
    /* The container's own program started it (docs/design/029-entry.md): who is to dial it, for
     * messages, how long it waits for that, and it ends with the job's status. NULL: no. */
    const char *entry;
    int64_t await_ms;
    bool as_launcher;      /* it takes over the launcher's umask, limits and CPUs (Launch.shell) */
    const char *oom_score; /* of the ranks, as oom_exempt gave it; NULL: as this process' */
};

/* Takes both descriptors. */
struct agent *agent_new(struct event_base *base, const struct agent_options *options,
                        struct drarun_error *err);
/* Runs until the job is over or no launcher can come any more; returns the exit status of the
 * agent: 0 when the launcher was told everything, 70 otherwise. */
int agent_run(struct agent *agent);
void agent_free(struct agent *agent);

#endif
