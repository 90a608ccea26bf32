/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 by code points. */
#ifndef DRARUN_CEL_UTF8_H
#define DRARUN_CEL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point at *at, which moves behind it. A byte that begins no valid sequence counts as
 * U+FFFD of length one, as in Go. */
uint32_t cel_utf8_next(const char *data, size_t len, size_t *at);
/* Bytes written to out (at most 4). */
size_t cel_utf8_put(char *out, uint32_t point);
bool cel_utf8_valid(const char *data, size_t len);
/* Code points. */
size_t cel_utf8_count(const char *data, size_t len);
/* Offset of a code point by its index; len when it lies at or behind the end. */
size_t cel_utf8_offset(const char *data, size_t len, size_t index);

#endif
