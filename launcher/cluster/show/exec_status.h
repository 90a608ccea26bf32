/* SPDX-License-Identifier: Apache-2.0 */
/* How a command in a container ended, as the kubelet reports it: a metav1.Status on the channel for
 * errors. */
#ifndef DRARUN_LAUNCHER_CLUSTER_EXEC_STATUS_H
#define DRARUN_LAUNCHER_CLUSTER_EXEC_STATUS_H

#include <stddef.h>
#include "drarun/error.h"

/* The exit status of the command, 0 to 255. A report without a status of that range is an error
 * with the kubelet's message. */
int exec_status_read(const char *text, size_t length, struct drarun_error *err);

#endif
