/* SPDX-License-Identifier: Apache-2.0 */
/* The words for why a job waits: from the states of its workers, the Events about them, and our own
 * evaluation of the slices. Pure. docs/design/016-waiting.md has the table of sentences.
 *
 *     waiting 41 s for 4 workers (3,5,8-9): no device of class dranet with rdma == true left;
 * claims 12/16 allocated, pods 10/16 running */
#ifndef DRARUN_JOBS_WAITING_H
#define DRARUN_JOBS_WAITING_H

#include <jansson.h>
#include <stdint.h>
#include "jobs/gang/gang.h"
#include "jobs/gang/pod_state.h"
#include "lib/dra/predict.h"
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

/* A PodGroup as it was read last. */
struct waiting_group {
    const char *name;
    const json_t *object; /* NULL: there is none of that name */
};

struct waiting_input {
    int64_t now_ms;
    const struct pod_state *workers;
    uint32_t count;
    const bool *inspected;                /* by worker: its agent has reported; NULL: not asked */
    const struct gang_decision *decision; /* NULL: only the workers' states */
    const struct prediction *prediction;  /* NULL: the slices are not known */
    const json_t *launcher_job;           /* the Job, for suspension; or NULL */
    const json_t *worker_job;             /* template mode: likewise */
    const struct news *job_news;          /* of the worker Job */
    const json_t *workload;               /* Kueue's Workload of it, or NULL */
    const char *launcher;                 /* the text of waiting_of_launcher, or NULL */
    const struct waiting_group *group;    /* that waiting_group named, or NULL: not read */
    bool spread;         /* one worker per node by placement.spread (jobs/spec/node_spread.h) */
    const char *trouble; /* why the cluster cannot be watched, or NULL */
    const char *refused; /* as gang_input has it */
};

/* -ENOMEM is the only error. */
int waiting_build(const struct waiting_input *input, struct waiting *ret_waiting,
                  struct drarun_error *err);
void waiting_done(struct waiting *waiting);

/* One line without its newline: the reason, then the counts. */
void waiting_line(const struct waiting *waiting, struct buf *out);
/* {"text", "reasons": [{"text", "node", "workers": "0-3,7", "count", "since", "stuck"}]}; at most
 * 20 reasons, then "more". NULL without memory. */
json_t *waiting_json(const struct waiting *waiting);

/* Where there is no status line: a line for each reason that is another one, and less and less
 * often where they alternate. Zeroed: nothing was said. */
struct waiting_told {
    char *reason;     /* that was said last, without what changes with each try */
    int64_t at_ms;    /* when */
    int64_t pause_ms; /* before the next */
};
/* reason: of the first of them; NULL: nothing is awaited. True: it is to be said now. *ret_next_ms:
 * when to ask again; 0: when the reason changes. */
bool waiting_tell(struct waiting_told *told, const char *reason, int64_t now_ms,
                  int64_t *ret_next_ms);
void waiting_told_done(struct waiting_told *told);

/* What one worker waits for, as the reasons above have it; NULL: for nothing, or without memory. */
char *waiting_of_worker(const struct pod_state *worker);
/* The kubelet has said what it cannot do for the pod: claims, volumes, sandbox. */
bool waiting_for_kubelet(const struct pod_state *worker);

/* Why the launcher's pod does not start. */
struct waiting_launcher {
    char *text;  /* "pod a-x2k8f on n0: image b of the launcher cannot be pulled (ErrImagePull)" */
    size_t why;  /* where that says why, behind the pod's name; 0: there is no pod */
    size_t same; /* its bytes that stay while reasons and messages change with each try */
    bool fails;  /* something does, so that people should know */
};

/* pod NULL: there is none; job_news: of the launcher Job, pod_news: of the pod. Text NULL: it runs
 * or has ended, or nothing is known, or without memory. */
void waiting_of_launcher(const json_t *pod, const struct news *pod_news,
                         const struct news *job_news, struct waiting_launcher *ret_launcher);
void waiting_launcher_done(struct waiting_launcher *launcher);

/* A scheduler's message in short: its counts without what every message has. NULL without memory,
 * or when it is empty. */
char *scheduler_words(const char *message);
/* The kubelet starts the container again and again. */
bool container_is_restarted(const struct pod_state *worker);
/* What a container does by the kubelet's reason: "cannot be made". */
const char *container_deed(const struct pod_state *worker);
/* What mends that, by the kubelet's reason and message; static, or NULL: the message says it all.
 */
const char *container_advice(const struct pod_state *worker);

/* "4 workers, one per node by placement.spread; 2 nodes fit; ..." where the
 * scheduler's message says that a worker's node must have no other; NULL where it
 * does not, or without memory. */
char *spread_words(const struct pod_state *workers, uint32_t count, const char *message);

/* The PodGroup of the first worker that waits for a node and has no reason of its own, so that its
 * group may have one; NULL: there is no such worker. */
const char *waiting_group(const struct pod_state *workers, uint32_t count);
/* What the group tells of that worker: "PodGroup a-w cannot be scheduled (Unschedulable): no node
 * has room for worker 1: ..."; NULL where it tells nothing of it, with group NULL, or without
 * memory. *ret_stuck is set with the words. */
char *group_words(const struct pod_state *workers, uint32_t count, uint32_t worker,
                  const struct waiting_group *group, bool *ret_stuck);

/* "no device of class dranet with rdma == true: ... rules out 32 of 32"; NULL when the prediction
 * has room for all, or without memory. */
char *devices_missing(const struct prediction *prediction);

#endif
