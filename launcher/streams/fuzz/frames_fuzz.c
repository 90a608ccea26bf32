/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a launcher's log, whole and byte by byte: the same pieces, none longer than what
 * came. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/streams/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    buf_add(arg, &rank, sizeof rank);
    buf_add(arg, &is_stderr, sizeof is_stderr);
    buf_add(arg, data, length);
}

static void on_own(void *arg, const char *line, size_t length)
{
    buf_add(arg, "own", 3);
    buf_add(arg, line, length);
}

static bool on_stamp(void *arg, const char *text, size_t length)
{
    buf_add(arg, text, length);
    return text[length - 1] != '0';
}

static void take(const uint8_t *data, size_t size, size_t step, struct buf *seen)
{
    struct frames frames;
    const struct frames_owner owner = {
        .output = on_output, .own = on_own, .stamp = on_stamp, .arg = seen};
    frames_init(&frames, &owner);
    for (size_t at = 0; at < size; at += step)
        frames_add(&frames, (const char *)data + at, size - at < step ? size - at : step);
    frames_end(&frames);
    frames_done(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT, bytes = BUF_INIT;
    take(data, size, size ? size : 1, &whole);
    take(data, size, 1, &bytes);
    if (whole.failed || bytes.failed || whole.len != bytes.len ||
        (whole.len && memcmp(whole.data, bytes.data, whole.len) != 0) || whole.len > 8 * size + 8)
        abort();
    buf_done(&whole);
    buf_done(&bytes);
    return 0;
}
