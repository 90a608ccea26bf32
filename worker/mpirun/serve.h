/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-worker --remote-serve FD: the rank of a worker that runs what the user's mpirun asks for
 * (remote.h). Starts commands by /bin/sh, passes on their output within a window, tells their ends.
 * When the connection ends it ends too, and the agent ends what is left as it does with ranks. */
#ifndef DRARUN_WORKER_REMOTE_SERVE_H
#define DRARUN_WORKER_REMOTE_SERVE_H

/* Takes the descriptor. Returns the exit status. */
int remote_serve(int fd);

#endif
