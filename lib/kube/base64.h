/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as encoding/base64's StdEncoding has it: padded, line breaks are skipped. Pure. */
#ifndef DRARUN_KUBE_BASE64_H
#define DRARUN_KUBE_BASE64_H

#include <stddef.h>
#include "lib/base/buf.h"

/* Appends; 0, -EINVAL or -ENOMEM. */
int base64_decode(const char *text, struct buf *out);
/* Appends; out->failed without memory. */
void base64_encode(const void *data, size_t length, struct buf *out);

#endif
