/* SPDX-License-Identifier: Apache-2.0 */
/* BPF programs that the host, or a pod, left on a device: XDP and TCX. Those of TC are gone with
 * the move, which takes the device's queueing disciplines away. */
#ifndef DRARUN_ATTACH_EBPF_H
#define DRARUN_ATTACH_EBPF_H

#include "plugin/attach/link.h"

/* link is in ns, which n speaks to. A program that a BPF link holds is taken off TCX; from XDP the
 * kernel lets only the link's owner do so, which is an error. */
int ebpf_remove(struct netlink *n, int ns, const struct link *link, struct drarun_error *err);

/* Whether there are any; true too where we may not ask. link is in our own network namespace. */
bool ebpf_is_there(const struct link *link);

#endif
