/* SPDX-License-Identifier: Apache-2.0 */
/* The PMIx server's port on the loopback, which every user of the machine and every container of
 * the pod can reach. Accepts connections, asks the kernel whose process each is, and closes those
 * of other users unread. A connection is shown to the owner once its handshake is there as a whole,
 * since libpmix reads it on its only thread: one that stays silent, or says half of it, costs a
 * descriptor until it is closed. Loop thread only. */
#ifndef DRARUN_WORKER_PMIX_LISTENER_H
#define DRARUN_WORKER_PMIX_LISTENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <event2/event.h>
#include "drarun/error.h"

struct pmix_listener;

/* A process of our user, as its handshake and the kernel show it. */
struct pmix_visitor {
    int fd;              /* non-blocking, close-on-exec, the callee's; nothing was taken from it */
    uint64_t inode;      /* of the other end's socket */
    const void *message; /* the handshake, borrowed; NULL: too long, or not one, or not readable */
    size_t length;
};

struct pmix_listener_owner { /* no call may free the listener */
    void (*connected)(void *arg, const struct pmix_visitor *visitor);
    /* A process of that user is about to lose its connection. */
    void (*refused)(void *arg, uid_t uid);
    void *arg;
};

struct pmix_listener *pmix_listener_new(struct event_base *base,
                                        const struct pmix_listener_owner *owner, uint16_t *ret_port,
                                        struct drarun_error *err);
/* Closes the port and the connections that were not handed on. NULL is fine. */
void pmix_listener_free(struct pmix_listener *listener);

#endif
