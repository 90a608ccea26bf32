/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for what must do without OpenSSL: jobs/ and libdrarun. Pure. */
#ifndef DRARUN_BASE_SHA256_H
#define DRARUN_BASE_SHA256_H

#include <stddef.h>

#define SHA256_TEXT_SIZE 65 /* 64 hexadecimal digits */

/* Lower-case hexadecimal digits. */
void sha256_text(const void *data, size_t length, char ret_text[SHA256_TEXT_SIZE]);

#endif
