/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs that a process may use, on machines of any size. */
#ifndef DRARUN_BASE_AFFINITY_H
#define DRARUN_BASE_AFFINITY_H

#include <stdint.h>
#include <sys/types.h>

/* How many the calling process may use; 0 when the kernel does not tell. */
uint32_t affinity_count(void);
/* Gives the calling process those of another process; does nothing when the kernel does not tell or
 * refuses. */
void affinity_copy(pid_t from);

#endif
