/* SPDX-License-Identifier: Apache-2.0 */
/* The PMIx server's port on the loopback, which every user of the machine and every container of
 * the pod can reach. Accepts connections, asks the kernel whose process each is, and closes those
 * of other users unread. A connection is handed on once it has something to read, since libpmix
 * reads a handshake on its only thread: one that stays silent costs a descriptor until it is
 * closed. Loop thread only. */
#ifndef DRARUN_WORKER_PMIX_LISTENER_H
#define DRARUN_WORKER_PMIX_LISTENER_H

#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"

struct pmix_listener;

/* fd is non-blocking, close-on-exec and the callee's. Must not free the listener. */
typedef void (*pmix_listener_fn)(int fd, void *arg);

struct pmix_listener *pmix_listener_new(struct event_base *base, pmix_listener_fn connected,
                                        void *arg, uint16_t *ret_port, struct drarun_error *err);
/* Closes the port and the connections that were not handed on. NULL is fine. */
void pmix_listener_free(struct pmix_listener *listener);

#endif
