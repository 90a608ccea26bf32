/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in lines for a terminal. Pure. */
#ifndef DRARUN_BASE_WRAP_H
#define DRARUN_BASE_WRAP_H

#include <stddef.h>
#include "lib/base/buf.h"

#define WRAP_COLUMNS 80

/* Appends the words of text in lines of at most WRAP_COLUMNS columns, each but the first behind
 * `indent` blanks and each with a newline at its end; the first begins at the column `at` (from 0),
 * where out stands already. Blanks and newlines of text divide words alike; a longer word has a
 * line of its own. A character is one column. */
void wrap_add(const char *text, size_t at, size_t indent, struct buf *out);

/* The same of `length` bytes of one line, in lines of at most `width` columns, without a newline at
 * the end. The escape sequence of a colour has no column. */
void wrap_words(const char *text, size_t length, size_t at, size_t indent, size_t width,
                struct buf *out);
size_t wrap_columns(const char *text, size_t length);

#endif
