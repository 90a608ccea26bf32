/* SPDX-License-Identifier: Apache-2.0 */
/* One test as a job, which a process of its own runs by the function of `drarun run`, and what its
 * end says. Loop thread only. */
#ifndef DRARUN_LAUNCHER_ACCEPT_TRIAL_H
#define DRARUN_LAUNCHER_ACCEPT_TRIAL_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "launcher/programs/accept_order.h"
#include "launcher/programs/cluster_api.h"

struct trial;

/* fatal: the job can never run (the spec is wrong): `answer` has no meaning then. The trial is gone
 * when fn returns. */
typedef void (*trial_fn)(const struct accept_answer *answer, const struct drarun_error *fatal,
                         void *arg);

/* job: the whole document. Kind SPEC: it is not a job. */
int trial_start(struct event_base *base, const struct accept_order *order, const json_t *job,
                trial_fn fn, void *arg, struct trial **ret, struct drarun_error *err);
/* How long a job has waited for its room: a queue, nodes, devices. That time is not the test's. And
 * what it waits for. */
struct trial_wait {
    bool waits;        /* it still does */
    bool not_led;      /* nothing leads it yet, wherever its launcher is to run */
    bool unknown;      /* waited_ms lacks something */
    int64_t waited_ms; /* for what it has found, in all attempts */
    bool pulls;        /* a worker's image is being pulled, as far as is known without failing */
    char reason[192];  /* what it waits for; "": nothing */
};
/* Of the job's status document; NULL: there is none yet. Pure. */
void trial_wait_read(const json_t *doc, struct trial_wait *ret);
/* The time until the next look at a job that began age_ms ago; 0: it is over. unknown: the looks in
 * a row, this one too, by which the wait was not known. Pure. */
int64_t trial_left(const struct trial_wait *wait, int64_t limit_ms, int64_t age_ms,
                   unsigned unknown);

/* Its time is over, and trial_go_on decides. */
bool trial_is_due(const struct trial *trial);
/* Goes on for what the wait has left of its time, or ends the job as trial_stop does. */
void trial_go_on(struct trial *trial, const struct trial_wait *wait);
/* Asks the job to end, and kills its client if it takes too long; fn is still called. Does nothing
 * the second time. */
void trial_stop(struct trial *trial);
/* Kills it; fn is not called. NULL is fine. */
void trial_free(struct trial *trial);
static inline void trial_freep(struct trial **trial)
{
    trial_free(*trial);
}

/* What the job of a test starts. */
struct trial_shape {
    uint32_t workers, ranks; /* ranks: of all workers */
    double floor_alone;      /* GB/s that a node alone must reach; 0: none */
};

/* What a job's end says, and its output. Returns -errno with fatal filled for what no other try
 * would change. Pure. */
int trial_judge(const struct cluster_end *end, const struct trial_shape *shape, const char *out,
                size_t length, struct accept_answer *ret, struct drarun_error *fatal);

/* The same of one that had not ended in time. printed: a rank had written something. A job that
 * still pulled its image says nothing of its nodes: the next try finds what was pulled. Pure. */
void trial_judge_late(bool printed, const struct trial_wait *wait, int64_t limit_ms,
                      struct accept_answer *ret);

#endif
