/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a job that is followed: the lines of its ranks, chosen and labelled as was asked
 * for, and the launcher's own. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_OUTPUT_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_OUTPUT_H

#include <jansson.h>
#include "launcher/cluster/follow/log_tail.h"
#include "launcher/cluster/follow/options.h"
#include "launcher/streams/status_line.h"

struct follow_output {
    const struct follow_options *options; /* borrowed */
    follow_output_fn put; /* gets the chosen lines besides, in the place of options->put; or NULL */
    void *arg;
    int64_t after_ms;         /* no lines from before this time, in ms since 1970; 0: all */
    struct status_line *line; /* its owner takes it away before a write; NULL: none. Freed here. */
    struct log_tail tail;     /* what options->tail keeps */
    char stamp[48];           /* the time of the line that comes next */
    bool too_old;             /* it is from before after_ms */
    bool refused;             /* `put` wants no more */
};

/* What the options need; -ENOMEM. follow_output_done is due also on failure. */
int follow_output_init(struct follow_output *output);
void follow_output_done(struct follow_output *output);

/* The time of the line that comes next, as the kubelet writes it. */
void follow_output_stamp(struct follow_output *output, const char *text, size_t length);
/* A line of a rank, or a piece of one. */
void follow_output_add(struct follow_output *output, uint32_t rank, bool is_stderr,
                       const char *data, size_t length);
/* A line of the launcher's own; json: of it, or NULL where it is none. */
void follow_output_own(struct follow_output *output, const json_t *json, const char *line,
                       size_t length);
/* Nothing follows: the lines that were kept are written. */
void follow_output_end(struct follow_output *output);

#endif
