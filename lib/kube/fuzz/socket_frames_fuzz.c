/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a server's frames: whole and in two parts they are the same messages. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/kube/socket_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    struct socket_frames frames;
    struct buf inbox, replies;
    ssize_t read; /* bytes, or the error */
};

static void reading_add(struct reading *r, const char *bytes, size_t length)
{
    struct drarun_error err = {0};
    if (r->read < 0)
        return;
    ssize_t n = socket_frames_read(&r->frames, bytes + r->read, length - (size_t)r->read, &r->inbox,
                                   &r->replies, &err);
    if (n < 0 && !err.text[0])
        abort();
    if (n > 0 && (size_t)n > length - (size_t)r->read)
        abort();
    r->read = n < 0 ? n : r->read + n;
}

static void reading_done(struct reading *r)
{
    socket_frames_done(&r->frames);
    buf_done(&r->inbox);
    buf_done(&r->replies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole = {0}, parts = {0};
    if (size < 1)
        return 0;
    const char *bytes = (const char *)data + 1;
    reading_add(&whole, bytes, size - 1);
    reading_add(&parts, bytes, data[0] < size - 1 ? data[0] : size - 1);
    reading_add(&parts, bytes, size - 1);
    if (whole.read != parts.read || whole.inbox.len != parts.inbox.len ||
        whole.replies.len != parts.replies.len ||
        (whole.inbox.len > 0 && memcmp(whole.inbox.data, parts.inbox.data, whole.inbox.len) != 0))
        abort();
    reading_done(&whole);
    reading_done(&parts);
    return 0;
}
