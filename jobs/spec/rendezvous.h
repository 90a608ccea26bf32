/* SPDX-License-Identifier: Apache-2.0 */
/* Who the workers of a job are, as the controller that made their pods tells each of them
 * (docs/design/029-entry.md): a LeaderWorkerSet's variables, an Indexed Job's or a JobSet's index,
 * a StatefulSet's pod name, or a list. Pure. */
#ifndef DRARUN_JOBS_RENDEZVOUS_H
#define DRARUN_JOBS_RENDEZVOUS_H

#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

/* What one pod knows; texts are NULL where it does not. */
struct rendezvous_facts {
    const char *peers; /* --peers: HOST[:PORT],... where HOST may hold ranges, "web-[0-3].web" */
    int64_t index;     /* --index; -1 */
    uint32_t workers;  /* --workers; 0 */
    uint16_t port;     /* where an address names none */
    const char *lws_leader, *lws_size,
        *lws_index;               /* LWS_LEADER_ADDRESS, _GROUP_SIZE, _WORKER_INDEX */
    const char *completion_index; /* JOB_COMPLETION_INDEX */
    const char *hostname;
    const char *fqdn; /* the same with the domain of its headless service */
};

struct rendezvous {
    struct strlist addresses; /* HOST:PORT by worker */
    uint32_t index;           /* which of them this pod is */
    const char *source;       /* "a LeaderWorkerSet": who told; static */
};

/* *ret_rendezvous is done with rendezvous_done. Errors have kind DRARUN_ERR_USAGE, and say what was
 * looked for and what would help. */
int rendezvous_find(const struct rendezvous_facts *facts, struct rendezvous *ret_rendezvous,
                    struct drarun_error *err);
void rendezvous_done(struct rendezvous *rendezvous);

#endif
