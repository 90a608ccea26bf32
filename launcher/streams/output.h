/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks' output on its way to our stdout and stderr, or to a file for each rank and stream. It
 * gives back to the agents what they may send again, so that a slow reader slows the ranks and
 * nothing piles up here. Loop thread only. */
#ifndef DRARUN_LAUNCHER_OUTPUT_H
#define DRARUN_LAUNCHER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "launcher/streams/sink.h"

enum output_stream { OUTPUT_STDOUT = 1, OUTPUT_STDERR };

struct output_owner {
    /* So many of the agent's bytes are written or dropped. */
    void (*credit)(void *arg, uint32_t agent, size_t bytes);
    /* Nobody reads this stream any more. */
    void (*closed)(void *arg, enum output_stream stream);
    /* Output is being lost; called once. */
    void (*failed)(void *arg, const struct drarun_error *err);
    /* About to write to our own stdout or stderr. */
    void (*before)(void *arg);
    /* These bytes are on their way to our own stdout or stderr. May be NULL. */
    void (*written)(void *arg, const char *data, size_t length);
    /* output_idle has become true. */
    void (*idle)(void *arg);
    void *arg;
};

struct output;

enum output_form {
    OUTPUT_PLAIN = 0,
    OUTPUT_LABELLED, /* "[rank] " before each line */
    OUTPUT_FRAMED,   /* everything, our own lines too, on stdout: LINES_FRAMED of lines.h */
};

struct output_options {
    enum output_form form;
    /* NULL, or where the files of ranks go; it is made if missing and the files are created, so
     * that lack of permission or space shows before anything starts. */
    const char *dir;
    /* Of the ranks' standard output, which goes on when nobody reads ours; not with `dir` or
     * OUTPUT_FRAMED. NULL: none. */
    const struct sink_reader *reader;
};

struct output *output_new(struct event_base *base, uint32_t ranks,
                          const struct output_options *options, const struct output_owner *owner,
                          struct drarun_error *err);
/* There are so many ranks now. */
int output_grow(struct output *output, uint32_t ranks, struct drarun_error *err);
void output_free(struct output *output);

/* Bytes of a rank, as in wire.proto's Output. rank must be below the number of ranks. */
void output_add(struct output *output, uint32_t agent, uint32_t rank, enum output_stream stream,
                const void *data, size_t length, bool partial);
void output_rank_ended(struct output *output, uint32_t rank);
/* Nothing more comes: what still waits for others' unfinished lines is written. */
void output_finish(struct output *output);

/* A line of our own, for stderr (OUTPUT_FRAMED: stdout); it may fall between pieces of a rank's
 * unfinished line. */
void output_say(struct output *output, const char *line, size_t length);

/* Nothing is queued. */
bool output_idle(const struct output *output);
/* Changes when some of it was written; what is dropped does not count. */
uint64_t output_written(const struct output *output);
/* Drops what is queued and whatever comes: the job must end at once. */
void output_discard(struct output *output);
/* The same where something is queued, since its reader has stalled, and not where all is read. */
void output_discard_stalled(struct output *output);

#endif
