/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a rank, from /proc. Nothing is kept; nothing blocks. Any thread. */
#ifndef DRARUN_WORKER_PROCESS_TREE_H
#define DRARUN_WORKER_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* /proc/PID/NAME as text that ends in NUL, cut to size. Returns its length; 0: nothing, or the
 * process is gone. */
int process_read(pid_t pid, const char *name, char *text, size_t size);

/* Calls look for root and then for the children of each process' main thread, parents first, until
 * it returns false. At most 512 processes, 16 generations. */
void process_tree_walk(pid_t root, bool (*look)(pid_t pid, void *arg), void *arg);

#endif
