/* SPDX-License-Identifier: Apache-2.0 */
/* For targets that play the other end of a program's connections: an input is steps, each of a byte
 * that says what happens, a length of two bytes (the first is the higher), and so many bytes. */
#ifndef DRARUN_FUZZ_PEER_H
#define DRARUN_FUZZ_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.pb-c.h"

struct step {
    uint8_t what;
    const uint8_t *bytes; /* borrowed from the input */
    size_t length;
};

/* Takes the next step off the input; false at its end. A length beyond the end is cut. */
bool step_next(const uint8_t **data, size_t *size, struct step *ret_step);

struct peer {
    int fd; /* ours; -1: closed, or there was never a connection */
};

/* A new socketpair; the other end is the caller's. */
int peer_open(struct peer *peer);
void peer_close(struct peer *peer);
/* A frame with these bytes as its body. */
void peer_send(struct peer *peer, const void *body, size_t length);
void peer_send_message(struct peer *peer, const Drarun__Wire__Envelope *message);
/* These bytes without a frame. */
void peer_send_raw(struct peer *peer, const void *bytes, size_t length);
/* Reads what was sent to us. Aborts where a whole frame of it holds no message. */
void peer_read(struct peer *peer);

/* Standard input and output of the program under test until peer_streams_restore: what it writes
 * goes nowhere, and it finds `input` to read. What the sanitizers say still goes to the log. */
void peer_streams_divert(const void *input, size_t length);
void peer_streams_restore(void);

/* A folder of this process, removed with all that is in it when the process ends. */
const char *peer_folder(void);

#endif
