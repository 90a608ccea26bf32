/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of other jobs that ranks here are connected with, or were: who they are, and what they
 * have put. Loop thread only. */
#ifndef DRARUN_WORKER_PMIX_FAR_H
#define DRARUN_WORKER_PMIX_FAR_H

#include "worker/pmix/host.h"

#include <pmix_server.h>

/* A group of another job has connected: the library learns of it. Once for each connection. */
pmix_status_t far_add(struct pmix_host *host, const Drarun__Wire__FarGroup *wire);
/* What one of its ranks has put. PMIX_ERR_NOT_FOUND: it is of no group that has connected. */
pmix_status_t far_put(struct pmix_host *host, const Drarun__Wire__FarRank *wire);
/* A connection with it has ended. forget: at the last one nothing is kept of it. */
void far_leave(struct pmix_host *host, const char *nspace, bool forget);
/* Of those without a connection only the most recent ones are kept. */
void far_remove_old(struct pmix_host *host);
/* What such a rank has put, NULL: it is not known. Borrowed. */
const struct buf *far_modex(struct pmix_host *host, const pmix_proc_t *proc);
/* All, when the library is gone or going. */
void far_drop(struct pmix_host *host);

#endif
