/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others for terminals: an Event, an API server's answer or a file's name must not move the
 * cursor, change a title or hide a line. */
#ifndef DRARUN_BASE_PLAIN_H
#define DRARUN_BASE_PLAIN_H

#include <stddef.h>

/* Length of the UTF-8 sequence at p (Unicode 15, table 3-7), 0 where there is none; left: bytes
 * from p, at least 1. */
size_t utf8_length(const unsigned char *p, size_t left);

/* Copies as many whole characters of src as fit into dst with its end; stops at what is no UTF-8.
 * A part of a character would make JSON invalid. size: of dst, at least 1. */
void utf8_copy(char *dst, size_t size, const char *src);

/* How many bytes of a text of this length to take, at most `most`, so that no character is cut. */
size_t utf8_cut(const char *text, size_t length, size_t most);

/* Drops the part of a character that a text which was cut ends with. */
void utf8_trim(char *text);

/* Makes "?" of each byte that is no UTF-8 or belongs to a control character (C0 but tab and
 * newline, DEL, C1), in place. */
void plain_text(char *text, size_t length);

/* What others wrote may have lines that look like ours: indents each further line of a message,
 * where it is not yet, by two spaces, in place. Returns the new length, of at most size; what does
 * not fit is cut. The result has no NUL. */
size_t plain_indent(char *text, size_t length, size_t size);

#endif
