/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's RDMA devices, opened in a process of their own (docs/design/038-open-nics.md): a driver
 * may never return from a call, and 64 MiB of ours would be locked. */
#ifndef DRARUN_WORKER_NICS_H
#define DRARUN_WORKER_NICS_H

/* drarun-worker --nics: that process. Writes a line to standard output for each device whose node
 * is here, as soon as it is done (lib/inspect/verbs_json.h); returns the exit status. */
int nics_serve(void);

#endif
