/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/base64.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

static size_t pads(const char *packed, size_t n)
{
    size_t count = 0;
    while (count < 2 && n > count && packed[n - 1 - count] == '=')
        count++;
    return count;
}

int base64_decode(const char *text, struct buf *out)
{
    cleanup_free char *packed = malloc(strlen(text) + 1);
    size_t n = 0;
    for (const char *c = text; packed && *c; c++)
        if (!strchr("\r\n", *c))
            packed[n++] = *c;
    if (!packed || !buf_reserve(out, n / 4 * 3 + 1))
        return -ENOMEM;
    size_t padding = pads(packed, n);
    /* EVP_DecodeBlock trims blanks, and takes "=" for zero bits wherever it stands */
    if (n % 4 || n > INT_MAX || memchr(packed, '=', n - padding) || memchr(packed, ' ', n) ||
        memchr(packed, '\t', n))
        return -EINVAL;
    int length = EVP_DecodeBlock((unsigned char *)out->data + out->len,
                                 (const unsigned char *)packed, (int)n);
    if (length < 0)
        return -EINVAL;
    out->len += (size_t)length - padding;
    out->data[out->len] = '\0';
    return 0;
}

void base64_encode(const void *data, size_t length, struct buf *out)
{
    size_t size = (length + 2) / 3 * 4;
    if (length > INT_MAX || !buf_reserve(out, size + 1))
        return;
    out->len += (size_t)EVP_EncodeBlock((unsigned char *)out->data + out->len, data, (int)length);
}
