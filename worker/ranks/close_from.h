/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps descriptors from a program that is about to be executed. Only system calls: both may be
 * called between vfork and execve. They return 0 or -errno. */
#ifndef DRARUN_WORKER_CLOSE_FROM_H
#define DRARUN_WORKER_CLOSE_FROM_H

/* All descriptors in [first, last] are closed now or, before Linux 5.9, at execve. */
int close_between(int first, int last);
int close_from(int first);

#endif
