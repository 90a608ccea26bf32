/* SPDX-License-Identifier: Apache-2.0 */
/* One move of an RDMA device at a time on this node, by whichever process: a move takes the
 * device's character device away and makes another with the lowest number that is free, so that two
 * moves at once exchange their numbers. */
#ifndef DRARUN_ATTACH_RDMA_LOCK_H
#define DRARUN_ATTACH_RDMA_LOCK_H

#include <stdint.h>
#include "drarun/error.h"

#define RDMA_LOCK_NAME "rdma.lock"
#define RDMA_LOCK_MS 10000 /* a move takes milliseconds, or as long as the driver needs */

/* Waits so many milliseconds at most for the lock, a file beside an order's, which is made where it
 * is not: a regular one of the caller's user that nobody else may write. It is held until *ret_fd
 * is closed, or the process ends in whatever way. -ETIMEDOUT names the file and the time. Uses
 * SIGUSR1. */
int rdma_lock(const char *order_path, int64_t wait_ms, int *ret_fd, struct drarun_error *err);

#endif
