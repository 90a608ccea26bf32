/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices and network namespaces (RDMA netlink). In the system's shared mode every namespace
 * sees every device and nothing is moved; in exclusive mode a device is in one namespace. */
#ifndef DRARUN_ATTACH_RDMA_H
#define DRARUN_ATTACH_RDMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "drarun/error.h"

/* 1: shared, 0: exclusive. -ENODEV: the kernel has no RDMA. */
int rdma_shared(struct drarun_error *err);
/* Is the device in ns (-1: the caller's own)? 1, 0. */
int rdma_is_in(int ns, const char *name, struct drarun_error *err);
/* Waits until a time of clock_ms() for it to be in the caller's own: 1, or 0. The kernel sends no
 * news of RDMA devices: it is asked every 20 ms. */
int rdma_await(const char *name, int64_t until_ms, struct drarun_error *err);
/* Moves it from one to the other (-1: the caller's own) and makes sure that it is there, under the
 * lock beside an order (rdma_lock.h). -ENODEV: it is not in `from` when its turn has come. */
int rdma_move(int from, int to, const char *name, const char *order_path, struct drarun_error *err);

/* The character device by which programs reach it. A move gives it the lowest number that is free
 * then, so that it is another one's before and after. */
struct rdma_node {
    char name[32]; /* in /dev/infiniband, "uverbs0" */
    dev_t number;
};
/* The verbs node of a device in ns (-1: the caller's own), as the kernel has it now: 1; 0: it has
 * none (no module ib_uverbs), or the kernel does not say (before Linux 5.1). */
int rdma_verbs_node(int ns, const char *name, struct rdma_node *ret, struct drarun_error *err);
/* The numbers of all verbs nodes in ns, at most `max`: how many. */
int rdma_verbs_numbers(int ns, dev_t *ret_numbers, int max, struct drarun_error *err);

#endif
