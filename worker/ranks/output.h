/* SPDX-License-Identifier: Apache-2.0 */
/* The output pipes of an agent's ranks, and what they say beside them, from bytes to lines, within
 * one window for all. One epoll set under one event, so that a full window stops all reading with
 * one call; one read buffer, so that a rank costs only its unfinished line. Loop thread only. */
#ifndef DRARUN_WORKER_RANK_OUTPUT_H
#define DRARUN_WORKER_RANK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "worker/ranks/ranks.h"

/* Silence after which the start of a line is passed on. */
#define RANK_OUTPUT_SILENCE_MS 50

struct rank_output_owner {
    /* As ranks_owner.output; at most RANKS_LINE_MAX bytes. May call rank_output_done and
     * rank_output_drop, not rank_output_free. */
    void (*output)(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                   size_t length, bool partial);
    /* Some slot may have become finished: look. */
    void (*closed)(void *arg);
    /* As ranks_owner.said; also from rank_output_free. */
    void (*said)(void *arg, void *token);
    void *arg;
};

struct rank_output;

/* slots: ranks that may be opened. */
struct rank_output *rank_output_new(struct event_base *base, size_t slots,
                                    const struct rank_output_owner *owner,
                                    struct drarun_error *err);
void rank_output_free(struct rank_output *out);
/* That so many may be opened in all. -ENOMEM. */
int rank_output_reserve(struct rank_output *out, size_t slots);

/* Makes both pipes of a rank; the caller closes the rank's blocking ends, ret_fd[0] for stdout and
 * ret_fd[1] for stderr, when the rank has them. err is not filled: returns -errno. */
int rank_output_open(struct rank_output *out, size_t slot, uint32_t rank, int ret_fd[2]);
/* The rank did not start. */
void rank_output_cancel(struct rank_output *out, size_t slot);

/* Both pipes are at EOF, dropped or given up, and all that came from them, or was said, was passed
 * on. */
bool rank_output_finished(const struct rank_output *out, size_t slot);
/* The end of the rank's stderr as read so far; borrowed until the loop runs again. */
const char *rank_output_stderr_tail(const struct rank_output *out, size_t slot, size_t *ret_length);

/* When bytes last came from any pipe: now, while there is no room to read them. 0: never. */
int64_t rank_output_active_us(const struct rank_output *out);

/* The rank's end was told: nobody asks for it again. */
void rank_output_forget_tail(struct rank_output *out, size_t slot);

/* As ranks_say. */
int rank_output_say(struct rank_output *out, size_t slot, enum rank_stream stream, const char *data,
                    size_t length, void *token);

/* So many bytes of the window are free again. */
void rank_output_done(struct rank_output *out, size_t bytes);
/* Nobody wants this stream, of ranks that start later neither. */
void rank_output_drop(struct rank_output *out, enum rank_stream stream);
/* Pipes still open are read for what is in them now, and not waited for any longer. */
void rank_output_give_up(struct rank_output *out);

#endif
