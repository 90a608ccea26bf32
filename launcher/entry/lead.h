/* SPDX-License-Identifier: Apache-2.0 */
/* Worker 0 of such a job: waits for the others, and runs the ranks. */
#ifndef DRARUN_LAUNCHER_ENTRY_LEAD_H
#define DRARUN_LAUNCHER_ENTRY_LEAD_H

#include <sys/types.h>
#include "drarun/error.h"
#include "jobs/spec/rendezvous.h"
#include "launcher/entry/entry.h"
#include "lib/wire/tls.h"

struct entry_lead { /* borrowed */
    const struct entry_options *options;
    const struct rendezvous *rendezvous;
    const struct tls_key *key;
    pid_t agent; /* our own, which is dialled as all others are */
};

/* Every wait ends by options->start_timeout_ms, with the names of who never came. *ret_status is
 * the job's; what there is to say of it has been said. */
int entry_lead(const struct entry_lead *lead, int *ret_status, struct drarun_error *err);

#endif
