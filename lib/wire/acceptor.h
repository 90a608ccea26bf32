/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections on a listening socket that strangers may reach: a bounded number in one turn
 * of the loop, and none for a moment where no descriptor is left, so that they wait in the kernel's
 * queue and cost no CPU. Loop thread only. */
#ifndef DRARUN_WIRE_ACCEPTOR_H
#define DRARUN_WIRE_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"

struct acceptor;

struct acceptor_owner {
    /* A connection: fd is non-blocking, close-on-exec and the callee's. */
    void (*accepted)(int fd, void *arg);
    /* No descriptor is left: close a connection that is worth less than the next one. Returns false
     * when there is none. May be NULL. */
    bool (*make_room)(void *arg);
    void *arg;
};

/* Takes the listening descriptor (also on failure). The callbacks must not free the acceptor. */
struct acceptor *acceptor_new_take(struct event_base *base, int fd,
                                   const struct acceptor_owner *owner, struct drarun_error *err);
/* No more connections for so long; also for accepted() to call. */
void acceptor_pause(struct acceptor *acceptor, int64_t ms);
/* Closes the listening descriptor. NULL is fine. */
void acceptor_free(struct acceptor *acceptor);

#endif
