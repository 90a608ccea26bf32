/* SPDX-License-Identifier: Apache-2.0 */
/* Data between this pod's NICs and those of its neighbours, in a process of its own
 * (docs/design/038-open-nics.md): a driver's call may never return. */
#ifndef DRARUN_WORKER_REACH_H
#define DRARUN_WORKER_REACH_H

/* drarun-worker --reach: that process. Reads what to do from standard input and tells what came of
 * it on standard output, each a line of JSON, until its input ends; returns the exit status. */
int reach_serve(void);

#endif
