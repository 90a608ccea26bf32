/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces by descriptor. Entering one changes the calling thread: for single-threaded
 * programs (drarun-attach) alone. */
#ifndef DRARUN_ATTACH_NETNS_H
#define DRARUN_ATTACH_NETNS_H

#include <stdbool.h>
#include <sys/types.h>
#include "drarun/error.h"

/* The caller's own; the caller closes it. */
int netns_own(int *ret_ns, struct drarun_error *err);
/* A process's; the caller closes it. */
int netns_of(pid_t pid, int *ret_ns, struct drarun_error *err);
bool netns_same(int a, int b);

/* Enters ns; with -1 nothing happens, now and in netns_leave. */
int netns_enter(int ns, int *ret_back, struct drarun_error *err);
/* Goes back and closes `back`. In a namespace that it cannot leave the program ends at once: every
 * further step would be done to the wrong network. */
void netns_leave(int back);

/* Calls fn for each other network namespace that a process is in or that is mounted in /run/netns
 * or /var/run/netns, once, until it returns something else than 0, which is returned. Namespaces
 * that end meanwhile are left out. The descriptor is closed afterwards. */
typedef int (*netns_fn)(int ns, void *arg, struct drarun_error *err);
int netns_each_other(netns_fn fn, void *arg, struct drarun_error *err);

#endif
