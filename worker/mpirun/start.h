/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-rsh: what mpirun runs in place of ssh. Takes ssh's arguments, has the agent start the
 * command on the worker named, passes its output on and ends with its status. */
#ifndef DRARUN_WORKER_REMOTE_START_H
#define DRARUN_WORKER_REMOTE_START_H

#include <stdbool.h>

/* The program was called by that name. */
bool remote_start_is(const char *argv0);
/* argv as for ssh: [options] HOST COMMAND..., behind argv[0]. Returns the exit status: the
 * command's, or 255. */
int remote_start(int argc, char **argv);

#endif
