/* SPDX-License-Identifier: Apache-2.0 */
/* The words for why a job waits: from the states of its workers, the Events about them, and our own
 * evaluation of the slices. Pure. docs/design/016-waiting.md has the table of sentences.
 *
 *     claims 12/16 allocated, pods 10/16 running; waiting 41 s for 4 workers (3, 5, 8, 9): no
 * device of class dranet with rdma == true left */
#ifndef DRARUN_JOBS_WAITING_H
#define DRARUN_JOBS_WAITING_H

#include <jansson.h>
#include <stdint.h>
#include "jobs/gang.h"
#include "jobs/pod_state.h"
#include "jobs/predict.h"
#include "lib/base/buf.h"

/* Why workers wait, one for each different reason; the most workers first. */
struct waiting_reason {
    char *text;        /* "no device of class dranet with rdma == true left" */
    char *node;        /* where they all are, or NULL */
    uint32_t *workers; /* ascending */
    uint32_t count;
    int64_t since_ms; /* the longest wait among them; 0: unknown */
    bool whole;       /* it is the whole job that waits: workers are none */
    bool stuck;       /* this does not go on by itself */
};

struct waiting {
    struct waiting_reason *reasons;
    uint32_t count;
    uint32_t workers, claims, allocated, running; /* claims: how many are wanted */
    int64_t now_ms;
};

struct waiting_input {
    int64_t now_ms;
    const struct pod_state *workers;
    uint32_t count;
    const bool *inspected;                /* by worker: its agent has reported; NULL: not asked */
    const struct gang_decision *decision; /* NULL: only the workers' states */
    const struct prediction *prediction;  /* NULL: the slices are not known */
    const json_t *worker_job;             /* template mode: the Job, for suspension; or NULL */
    const struct news *job_news;          /* of the worker Job */
    const json_t *workload;               /* Kueue's Workload of it, or NULL */
};

/* -ENOMEM is the only error. */
int waiting_build(const struct waiting_input *input, struct waiting *ret_waiting,
                  struct drarun_error *err);
void waiting_done(struct waiting *waiting);

/* One line without its newline, at most width columns (0: any); UTF-8 is never cut in two. */
void waiting_line(const struct waiting *waiting, uint32_t width, struct buf *out);
/* For `drarun status`: the counts, then a line for each reason. */
void waiting_text(const struct waiting *waiting, struct buf *out);
/* {"text", "reasons": [{"text", "node", "workers": "0-3,7", "count", "since", "stuck"}]}; at most
 * 20 reasons, then "more". NULL without memory. */
json_t *waiting_json(const struct waiting *waiting);

/* "0-3,7": ascending numbers as ranges; at most max ranges, then ",..." . */
void worker_ranges(const uint32_t *workers, uint32_t count, uint32_t max, struct buf *out);

/* A scheduler's message in short: its counts without what every message has. NULL without memory,
 * or when it is empty. */
char *scheduler_words(const char *message);

/* "no device of class dranet with rdma == true: ... rules out 32 of 32"; NULL when the prediction
 * has room for all, or without memory. */
char *devices_missing(const struct prediction *prediction);

#endif
