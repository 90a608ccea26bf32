/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel settings of a network namespace, /proc/sys/net, in the caller's namespace. */
#ifndef DRARUN_ATTACH_SYSCTL_H
#define DRARUN_ATTACH_SYSCTL_H

#include "drarun/error.h"

/* family: "ipv4", "ipv6". name: "conf/net1/arp_ignore", "tcp_l3mdev_accept". Writes only what
 * differs. -ENOENT: the kernel has no such setting. */
int sysctl_ensure(const char *family, const char *name, int value, struct drarun_error *err);
int sysctl_ensure_device(const char *family, const char *device, const char *name, int value,
                         struct drarun_error *err);

#endif
