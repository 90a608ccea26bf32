/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a WebSocket, as a client reads and writes them (RFC 6455 §5): bytes in, messages
 * and bytes out. Without extensions. Text is not checked to be UTF-8. */
#ifndef DRARUN_KUBE_SOCKET_FRAMES_H
#define DRARUN_KUBE_SOCKET_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define SOCKET_MESSAGE_MAX ((size_t)4 << 20)

struct socket_frames {
    struct buf message; /* the fragments of a message whose last one has not come */
    bool in_message;
    bool closed; /* the server sent a close frame: what follows is ignored */
};

/* Reads the whole frames that the bytes begin with and returns how many bytes those were. Appends
 * to inbox each whole message that is not empty: a size_t, then that many bytes. Appends to
 * replies the answers to pings. -EPROTO: not as the RFC has it; -EMSGSIZE: a message of more than
 * SOCKET_MESSAGE_MAX bytes; -ENOMEM; -EIO, as socket_frames_write. An error is final. */
ssize_t socket_frames_read(struct socket_frames *frames, const char *bytes, size_t length,
                           struct buf *inbox, struct buf *replies, struct drarun_error *err);
/* Appends the message as one binary frame. -ENOMEM; -EIO: the kernel gave no random number. */
int socket_frames_write(const void *message, size_t length, struct buf *out);
/* Appends a ping, which the other side answers. As socket_frames_write. */
int socket_frames_ping(struct buf *out);
/* Leaves frames as zeros, from which reading may begin again. */
void socket_frames_done(struct socket_frames *frames);

#endif
