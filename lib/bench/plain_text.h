/* SPDX-License-Identifier: Apache-2.0 */
/* The text that a program wrote, from the file that somebody kept of it: UTF-16, as PowerShell's
 * redirection writes it; the entries of docker's json-file log driver, {"log": "...\n", "stream":
 * "stdout", "time": ...}; and the colour codes of terminals, also those that lost their escape byte
 * when they were pasted. Pure. */
#ifndef DRARUN_LIB_BENCH_PLAIN_TEXT_H
#define DRARUN_LIB_BENCH_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/buf.h"

struct plain_text {
    const char *data; /* borrowed from the file's text, or in `own` */
    size_t length;
    struct buf own;
};

/* False: out of memory. What needs no change is not copied. */
bool plain_text_of(const char *text, size_t length, struct plain_text *ret);
void plain_text_done(struct plain_text *plain);

#endif
