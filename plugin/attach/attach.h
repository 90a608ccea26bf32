/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a device into a container's network namespace and making it what the order says.
 * Repeated (another container of the pod, a restart) it finds all done and changes nothing. */
#ifndef DRARUN_ATTACH_ATTACH_H
#define DRARUN_ATTACH_ATTACH_H

#include "plugin/attach/order.h"

/* Waits until a time of clock_ms() for a device that is on its way back from a namespace that has
 * died. Where ns is the caller's own (hostNetwork) an interface is refused, and for an RDMA device
 * without one nothing is done. When it fails after moving the
 * device here, the device is taken back; if that fails too the error says where it was left. */
int attach_device(const struct attach_order *order, int ns, int64_t until_ms,
                  struct drarun_error *err);

#endif
