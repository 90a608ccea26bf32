/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the answer to a WebSocket's handshake, whole and as they come. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/kube/socket_upgrade.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct upgrade upgrade = {.key = "dGhlIHNhbXBsZSBub25jZQ=="};
    struct upgrade_answer whole = {0};
    struct drarun_error err = {0};
    int rc = upgrade_read(&upgrade, (const char *)data, size, &whole, &err);
    if (rc < 0 && !err.text[0])
        abort();
    if (rc > 0 && (whole.length == 0 || whole.length > size || whole.length > UPGRADE_HEAD_MAX ||
                   !memchr(whole.protocol, '\0', sizeof whole.protocol)))
        abort();
    for (size_t part = 0; rc > 0 && part < whole.length && part < 4096; part++) {
        struct upgrade_answer early = {0};
        if (upgrade_read(&upgrade, (const char *)data, part, &early, &err) > 0)
            abort(); /* an answer has one length */
    }
    if (rc > 0) {
        struct buf body = BUF_INIT;
        upgrade_read_body(&whole, (const char *)data + whole.length, size - whole.length, &body);
        if (body.len > size - whole.length)
            abort();
        buf_done(&body);
    }
    return 0;
}
