/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a launcher's log apart again (LINES_FRAMED of launcher/streams/lines.h): which rank wrote
 * what to which stream. Pure: bytes in, pieces out. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FRAMES_H
#define DRARUN_LAUNCHER_CLUSTER_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"

#define FRAMES_LINE_MAX ((size_t)5 << 20) /* a rank's piece and its label are shorter */

struct frames_owner {
    /* A piece of a rank's output: with its newline, or without where it goes on. */
    void (*output)(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length);
    /* A line of the launcher's own, without its newline: JSON, or what else there is. */
    void (*own)(void *arg, const char *line, size_t length);
    /* NULL: lines have none. Else the time that stands before a line, as the kubelet writes it;
     * false: the line is left out. */
    bool (*stamp)(void *arg, const char *text, size_t length);
    void *arg;
};

struct frames {
    struct frames_owner owner;
    struct buf line; /* the beginning of one */
};

void frames_init(struct frames *frames, const struct frames_owner *owner);
void frames_done(struct frames *frames);

/* Bytes of the log as they come. Without memory for a line it is handed on in pieces, as own(). */
void frames_add(struct frames *frames, const char *data, size_t length);
/* Nothing follows: an unfinished line is a line. */
void frames_end(struct frames *frames);

#endif
