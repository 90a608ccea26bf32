/* SPDX-License-Identifier: Apache-2.0 */
/* The last bytes of a stream, for reports. Takes memory only when something was written. */
#ifndef DRARUN_WORKER_TAIL_H
#define DRARUN_WORKER_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#define TAIL_MAX ((size_t)2048)

struct tail {
    char *data;
    size_t length;
    bool cut;  /* data before it was dropped */
    bool lost; /* there was no memory for it */
};

/* Without memory the tail says so. */
void tail_add(struct tail *tail, const void *data, size_t length);
/* From the start of a line, unless one line is longer than all; borrowed until the next call. */
const char *tail_text(const struct tail *tail, size_t *ret_length);
void tail_done(struct tail *tail);

#endif
