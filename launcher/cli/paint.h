/* SPDX-License-Identifier: Apache-2.0 */
/* Colours for the words of our texts that say how something is: passed, warning, failed. Tables are
 * laid out before, so that no width counts an escape sequence. */
#ifndef DRARUN_LAUNCHER_PAINT_H
#define DRARUN_LAUNCHER_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/buf.h"

/* A terminal that has colours, whose user has not said NO_COLOR (no-color.org). */
bool paint_wanted(int fd);

/* Appends text with colours. A word counts where a line or a column begins with it, or behind the
 * ": " of a heading, so that those of a sentence stay as they are. */
void paint_add(const char *text, size_t length, struct buf *out);

#endif
