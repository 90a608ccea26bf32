/* SPDX-License-Identifier: Apache-2.0 */
/* A device as it is on the host right now: what an order keeps for taking it back. Asks the kernel
 * (rtnetlink, ethtool) in the caller's network namespace. */
#ifndef DRARUN_ATTACH_HOST_LINK_H
#define DRARUN_ATTACH_HOST_LINK_H

#include "plugin/attach/order.h"

/* Fills order->host for the device that order->pci, order->mac and (where several ports share them)
 * order->host.name say; order->config decides which ethtool settings are kept. -ENODEV when it is
 * not here; order->host is untouched on failure. Idempotence is the caller's: once the device is in
 * a pod, what an earlier order says is what counts. */
int host_link_read(struct attach_order *order, struct drarun_error *err);

#endif
