/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to the first process of a container. */
#ifndef DRARUN_BASE_FIRST_PROCESS_H
#define DRARUN_BASE_FIRST_PROCESS_H

/* The kernel drops a signal for the first process of a PID namespace while it has no handler for it
 * (pid_namespaces(7)). A pod that is deleted while its program starts would then stay for its whole
 * grace period. In such a process SIGINT, SIGTERM and SIGHUP end it from here on with 128 + signal,
 * as a shell tells it of any other process, until the program sets handlers of its own. In every
 * other process this does nothing. To be called first in main(). */
void first_process_begin(void);

#endif
