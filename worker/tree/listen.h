/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's door: accepts TLS connections that know the job's key, waits for their hello, and
 * hands them on. Loop thread only. */
#ifndef DRARUN_WORKER_LISTEN_H
#define DRARUN_WORKER_LISTEN_H

#include <event2/event.h>
#include "drarun/error.h"
#include "lib/wire/channel.h"
#include "lib/wire/tls.h"

struct listen_door;

/* A peer with the key has said hello; the channel is the callee's. hello is borrowed. */
typedef void (*listen_hello_fn)(struct channel *channel, const Drarun__Wire__Hello *hello,
                                void *arg);

/* Connections that have not said hello: in all, and of one origin: an IPv4 address, a /64 network
 * of IPv6, or one user of this machine. Where there are few descriptors, a quarter and an eighth.
 */
#define LISTEN_GUESTS_MAX 128u
#define LISTEN_ORIGIN_MAX (LISTEN_GUESTS_MAX / 2)
/* What each of them has at least to prove the key, however many come. */
#define LISTEN_GRACE_MS 25

/* Takes the listening descriptor; key is copied. Every peer is accepted so that it can prove the
 * key: where too many wait, the oldest of the origin with the most goes; those that this process's
 * own user has made on this machine go last. A connection without a valid hello within 10 s goes,
 * too. Lines in the log say so, at most ten a second. */
struct listen_door *listen_open_take(struct event_base *base, int fd, const struct tls_key *key,
                                     listen_hello_fn on_hello, void *arg, struct drarun_error *err);
/* Tells the peer why, with an errno value, and closes. Takes the channel. */
void listen_refuse_take(struct channel *channel, const char *why, int code);
void listen_close(struct listen_door *door);

#endif
