/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.3 with a pre-shared key and an ephemeral exchange (psk_dhe_ke, RFC 8446 section 2.2): no
 * certificates, nothing expires; who lacks the job's key gets no further than the handshake.
 * Opened by the launcher only when an agent is dialled over TCP: the local job loads no OpenSSL. */
#ifndef DRARUN_WIRE_TLS_H
#define DRARUN_WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include <event2/bufferevent.h>
#include "drarun/error.h"

#define TLS_KEY_SIZE 32u

struct tls_key {
    uint8_t bytes[TLS_KEY_SIZE];
};

enum tls_side { TLS_CLIENT = 1, TLS_SERVER };

struct tls_context;

/* The key is copied; the context wipes its copy in tls_context_free. */
struct tls_context *tls_context_new(const struct tls_key *key, enum tls_side side,
                                    struct drarun_error *err);
void tls_context_free(struct tls_context *context);

/* OpenSSL reads no configuration from now on, neither $OPENSSL_CONF nor the file of its build: for
 * an agent in somebody's image. Before the first context. */
void tls_ignore_configuration(void);

/* What a handshake reads at most: two small messages of ours need less than 2 KiB. */
#define TLS_HANDSHAKE_MAX (16u * 1024)

/* TLS over a connected descriptor, which it takes (also on failure). The handshake runs on the
 * loop; data may be queued at once. A peer that sends more than TLS_HANDSHAKE_MAX bytes before it
 * has proved the key is an error of the connection. */
struct bufferevent *tls_open_take(struct tls_context *context, struct event_base *base, int fd,
                                  struct drarun_error *err);

/* Whether the peer of bev has proved that it holds the key. */
bool tls_has_proved(struct bufferevent *bev);

/* Why the TLS layer of bev failed, in words, "" where its socket did; false when it did not. */
bool tls_failure(struct bufferevent *bev, char *text, size_t size);

#endif
