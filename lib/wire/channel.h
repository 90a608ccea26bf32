/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that carries Envelopes, on a libevent loop; plain or TLS makes no difference here.
 * Everything runs on the loop's thread. */
#ifndef DRARUN_WIRE_CHANNEL_H
#define DRARUN_WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include <event2/bufferevent.h>
#include "drarun/error.h"
#include "lib/wire/wire.pb-c.h"

#define CHANNEL_SILENCE_MS 30000
/* The most that the user may choose for agents (Launch.agent_timeout_ms). The kernel ends their
 * connections so much later, since the launcher knows which agent is lost. */
#define CHANNEL_AGENT_TIMEOUT_MAX_MS 600000
#define CHANNEL_AGENT_BEYOND_MS 3000

struct channel;

/* A whole message; it is freed when the callback returns. The callback may free the channel. */
typedef void (*channel_message_fn)(struct channel *channel, Drarun__Wire__Envelope *message,
                                   void *arg);
/* The connection ended: err->code is 0 for an orderly end, else err says why. Called at most once;
 * nothing is delivered afterwards. The callback may free the channel. */
typedef void (*channel_closed_fn)(struct channel *channel, const struct drarun_error *err,
                                  void *arg);

/* Takes a connected descriptor (also on failure). NULL when out of memory. */
struct channel *channel_new_take(struct event_base *base, int fd, channel_message_fn on_message,
                                 channel_closed_fn on_closed, void *arg);
/* Takes a bufferevent that owns its descriptor, such as tls_open_take's. */
struct channel *channel_from_bufferevent_take(struct bufferevent *bev,
                                              channel_message_fn on_message,
                                              channel_closed_fn on_closed, void *arg);
/* Drops what was not sent yet; see channel_flush_close. NULL is fine. */
void channel_free(struct channel *channel);

/* Other receivers from now on, as when a hello has shown what the connection is for. */
void channel_set_callbacks(struct channel *channel, channel_message_fn on_message,
                           channel_closed_fn on_closed, void *arg);

/* A peer whose machine or network acknowledges nothing for so long is lost, also when nobody has
 * anything to say: without a call CHANNEL_SILENCE_MS. Whether its process works is not seen: one
 * that is stopped is waited for, however much is on its way to it. */
void channel_set_silence(struct channel *channel, unsigned int ms);

/* How to put a failed connection into words when the layer below is not a plain socket; returns
 * false when it has nothing to say, and "" where the socket broke and errno says how (tls_failure
 * has this shape). */
void channel_set_explain(struct channel *channel,
                         bool (*explain)(struct bufferevent *bev, char *text, size_t size));

/* Queues one message. Never blocks; -EMSGSIZE when it could not be queued; -ENOMEM: nor will any
 * other, and the channel ends on both sides, from the loop. The caller bounds the queue: by credit
 * (Output, Input) or because it asks and waits. */
int channel_send(struct channel *channel, const Drarun__Wire__Envelope *message);

/* Bytes queued and not yet handed to the kernel. */
size_t channel_backlog(const struct channel *channel);
/* Calls fn once, when the backlog is next empty (at once from the loop when it already is). */
void channel_on_drained(struct channel *channel, void (*fn)(void *arg), void *arg);
/* Bytes sent and received since the start, frames included. */
uint64_t channel_bytes(const struct channel *channel);
/* The peer as text, "127.0.0.1:40112" or "socketpair"; borrowed, valid as long as the channel. */
const char *channel_peer(const struct channel *channel);

/* Initialisers for the two levels of every message. */
#define WIRE_ENVELOPE(case_name, field, pointer)                                                   \
    {                                                                                              \
        .base = PROTOBUF_C_MESSAGE_INIT(&drarun__wire__envelope__descriptor),                      \
        .body_case = DRARUN__WIRE__ENVELOPE__BODY_##case_name, .field = (pointer)                  \
    }

#endif
