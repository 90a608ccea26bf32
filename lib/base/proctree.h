/* SPDX-License-Identifier: Apache-2.0 */
/* Ending every process that descends from this one, orphans included. The caller must be a child
 * subreaper (PR_SET_CHILD_SUBREAPER), so that orphans have it as their parent. */
#ifndef DRARUN_BASE_PROCTREE_H
#define DRARUN_BASE_PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes this process the parent of its descendants' orphans. */
int proctree_adopt_orphans(void);

/* Sends signo to every descendant of the process root except root itself and those for which skip
 * returns true (skip may be NULL; a skipped process's own descendants are still visited). Returns
 * how many were signalled. A process that got the number of one of them meanwhile gets no signal.
 * Reads /proc; without it nothing is signalled. */
size_t proctree_signal(pid_t root, int signo, bool (*skip)(pid_t pid, void *arg), void *arg);

/* The parent of a process; -1 when it is gone, or not to be seen. */
pid_t proctree_parent(pid_t pid);
/* Calls fn for each descendant of root, parents before their children unless there is no memory for
 * a list, until it returns true, which is then returned. A process whose parent ends meanwhile may
 * be left out. Reads /proc. */
bool proctree_any(pid_t root, bool (*fn)(pid_t pid, void *arg), void *arg);
/* It has begun to end (exit, or a signal's work is done) and may have closed its descriptors,
 * though perhaps nobody can wait for it yet. False when it is gone, or not to be seen. */
bool proctree_is_exiting(pid_t pid);

#endif
