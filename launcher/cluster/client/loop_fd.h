/* SPDX-License-Identifier: Apache-2.0 */
/* A libevent loop as a descriptor for somebody else's loop, of any make: readable while it has
 * something to do. libevent gives its epoll descriptor to nobody, so it is looked up in /proc. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LOOP_FD_H
#define DRARUN_LAUNCHER_CLUSTER_LOOP_FD_H

#include <event2/event.h>
#include "drarun/error.h"

struct loop_fd;

/* The base outlives it. -ENOTSUP: it waits otherwise than with epoll, or there is no /proc. */
int loop_fd_new(struct event_base *base, struct loop_fd **ret_loop, struct drarun_error *err);
/* NULL is fine. */
void loop_fd_free(struct loop_fd *loop);

int loop_fd_number(const struct loop_fd *loop);
/* Does what the base has to do, without waiting; not 0: it cannot. */
int loop_fd_run(struct loop_fd *loop);
/* Before the descriptor is waited for, when events were added meanwhile: their time is not in
 * epoll. loop_fd_run does it itself. */
void loop_fd_arm(struct loop_fd *loop);

#endif
