/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of a WebSocket as a client has it (RFC 6455 §4). Private to lib/kube; pure, but for
 * the random key. */
#ifndef DRARUN_KUBE_SOCKET_UPGRADE_H
#define DRARUN_KUBE_SOCKET_UPGRADE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define UPGRADE_HEAD_MAX 65536u

struct upgrade {
    char key[25]; /* Sec-WebSocket-Key */
};

struct upgrade_answer {
    int status;        /* HTTP */
    size_t length;     /* of the head: frames, or a body, follow */
    char protocol[32]; /* the subprotocol chosen; "" */
    bool chunked;      /* the body, as the head announces it */
    int64_t announced; /* its bytes; -1: until the connection ends */
};

/* Appends the request. url: the server's; target: path and query below it; headers: lines, of which
 * those without a value and Accept are left out, and Host stands for the URL's. */
int upgrade_request(struct upgrade *upgrade, const char *url, const char *target,
                    const char *protocols, const struct curl_slist *headers, struct buf *out,
                    struct drarun_error *err);

/* 0: more has to come; 1: ret_answer is set; -EPROTO: no answer to this request. */
int upgrade_read(const struct upgrade *upgrade, const char *text, size_t length,
                 struct upgrade_answer *ret_answer, struct drarun_error *err);

/* The body of an answer that opens nothing, from the text after its head: what of it has come is
 * added to body. True: that is all, though the connection may stay. */
bool upgrade_read_body(const struct upgrade_answer *answer, const char *text, size_t length,
                       struct buf *body);

#endif
