/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences in lines that fit into a terminal, broken between words. Pure. */
#ifndef DRARUN_LAUNCHER_FOLD_H
#define DRARUN_LAUNCHER_FOLD_H

#include <stddef.h>
#include "lib/base/buf.h"

/* Appends text; what does not fit into `width` columns of a line goes on below it, indented, and
 * below its sentence where a line is a label of one word, blanks and a sentence. Other rows of
 * tables, which have two blanks between columns, and variables (NAME=VALUE) stay whole, and so does
 * a word that is longer than a line. A character is one column, and the escape sequence of a colour
 * none. */
void fold_add(const char *text, size_t length, size_t width, struct buf *out);

#endif
