/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the output of many ranks into one stream and keeps lines whole: while a rank's line is
 * unfinished, the other ranks' chunks wait, which also withholds the credit that their agents need
 * to send more. No I/O and no clock: the owner emits bytes and says when waiting has lasted too
 * long (docs/design/008-output.md). */
#ifndef DRARUN_LAUNCHER_LINES_H
#define DRARUN_LAUNCHER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines_owner {
    /* Bytes in their final order. credit: bytes of the agent's Output that they stand for; data
     * also holds labels. */
    void (*emit)(void *arg, uint32_t agent, size_t credit, const void *data, size_t length);
    /* Somebody waits for an unfinished line, from now on or no longer: starts and stops the clock
     * that ends in lines_break. */
    void (*waiting)(void *arg, bool waits);
    void *arg;
};

struct lines;

enum lines_form {
    LINES_PLAIN = 0, /* the ranks' bytes alone */
    LINES_LABELLED,  /* "[rank] " before each line */
    /* A log that can be taken apart again (docs/design/015-cluster.md): "[rank] text", and
     * "[rank+] text" for what goes on in the rank's next line. No line is ever unfinished, so that
     * nobody waits. */
    LINES_FRAMED,
    LINES_FRAMED_ERR, /* the same for stderr: "[rank:err] text", "[rank:err+] text" */
};

/* NULL without memory. */
struct lines *lines_new(uint32_t ranks, enum lines_form form, const struct lines_owner *owner);
void lines_free(struct lines *lines);
/* There are so many ranks now. -ENOMEM. */
int lines_grow(struct lines *lines, uint32_t ranks);

/* The next bytes of a rank. partial: they end inside a line that goes on. -ENOMEM: they, or labels,
 * are lost. */
int lines_add(struct lines *lines, uint32_t agent, uint32_t rank, const void *data, size_t length,
              bool partial);
/* Nothing more comes from this rank. */
void lines_rank_ended(struct lines *lines, uint32_t rank);
/* The unfinished line is not waited for any longer, nor are short ones that have waited for it
 * since the clock was started. */
void lines_break(struct lines *lines);
/* Nothing more comes from any rank, also from those whose ends nobody reports. */
void lines_finish(struct lines *lines);

#endif
