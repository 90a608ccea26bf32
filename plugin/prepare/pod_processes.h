/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod still has processes on this node: those of its containers, or the one that holds
 * its sandbox. The kubelet puts them into a cgroup with the pod's UID in its name, with '_' for '-'
 * where systemd makes it. Needs the node's process namespace (hostPID). */
#ifndef DRARUN_PLUGIN_PREPARE_POD_PROCESSES_H
#define DRARUN_PLUGIN_PREPARE_POD_PROCESSES_H

#include "drarun/error.h"

/* 1, 0. proc: "/proc". An error where that cannot be read; of a process that ends meanwhile there
 * is nothing to read, and it does not count. */
int pod_processes(const char *proc, const char *uid, struct drarun_error *err);

#endif
