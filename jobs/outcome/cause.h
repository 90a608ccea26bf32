/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job ended: takes the ends of ranks and other events in the order in which they became known
 * and tells the first cause, the exit status and the sentences for people. Pure; the rules and the
 * texts are docs/design/006-ends.md. */
#ifndef DRARUN_JOBS_CAUSE_H
#define DRARUN_JOBS_CAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/gang/pod_state.h"
#include "jobs/ranks/rankmap.h"
#include "lib/base/buf.h"

enum cause_api { CAUSE_API_NONE = 0, CAUSE_API_PMIX, CAUSE_API_PMI1 };

/* One rank's end, as the agent reports it. Strings are borrowed until cause_rank_end returns. */
struct cause_end {
    uint32_t rank;
    uint32_t worker;
    const char *host;
    int code; /* exit status when signo is 0 */
    int signo;
    bool core; /* it dumped core */
    bool oom;  /* the kernel's OOM killer ended it */
    int64_t ran_us;
    enum cause_api api; /* what it connected to */
    bool finalized;     /* it left that API in order */
    bool by_us;         /* we were ending it */
    const char *advice; /* of its agent: why, and what mends it; NULL or "": it knows nothing */
    const char *stderr_tail;
    size_t stderr_tail_length;
};

enum cause_kind {
    CAUSE_NONE = 0,
    CAUSE_EXIT,        /* a rank's exit status */
    CAUSE_SIGNAL,      /* a rank's signal */
    CAUSE_ABORT,       /* a rank called MPI_Abort, PMIx_Abort or PMI_Abort */
    CAUSE_NO_FINALIZE, /* exited 0 having connected and not left in order: 1 */
    CAUSE_NO_INIT,     /* exited 0 without connecting, while others did: they would wait: 1 */
    CAUSE_FAILURE,     /* no rank's doing: an agent, a connection, the program not found */
    CAUSE_TIMEOUT,     /* the job's timeout: 124 */
    CAUSE_INTERRUPTED, /* the user's signal: 128 + signo */
    CAUSE_POD,         /* the cluster ended a worker: cause_pod.end */
    CAUSE_LAUNCHER,    /* the launcher was gone for too long, and the agents ended the ranks */
    CAUSE_DONE,        /* the ranks that decide (cause_decide_by) have all succeeded: 0 */
};

/* "no-finalize", the exit status in words, and one sentence each without a full stop: what it means
 * and what to do. The last three are NULL of CAUSE_NONE and CAUSE_DONE. */
const char *cause_kind_name(enum cause_kind kind);
const char *cause_kind_status(enum cause_kind kind);
const char *cause_kind_meaning(enum cause_kind kind);
const char *cause_kind_cure(enum cause_kind kind);

/* A worker's pod that has ended, or whose end is announced. Strings are borrowed until cause_pod
 * returns, and may be NULL. */
struct cause_pod {
    uint32_t worker;
    const char *pod, *node;
    enum pod_end end;
    const char *message; /* the cluster's words */
    int exit_code;       /* of its first container, or -1 */
    bool by_us;          /* we deleted it: no cause */
    bool deleting;       /* somebody has asked for its deletion */
};

struct cause;

/* map is borrowed for the life of the result. NULL without memory. */
struct cause *cause_new(const struct rankmap *map);
void cause_free(struct cause *cause);
/* The map is about to grow to so many ranks and programs. -ENOMEM. */
int cause_grow(struct cause *cause, uint32_t ranks, uint32_t apps);

/* These ranks decide whether the job has succeeded: when all of them have ended in order, it is
 * over, and how the others end is of no matter. Before that a failure of any rank is the job's.
 * Without a call all ranks do. */
void cause_decide_by(struct cause *cause, uint32_t first, uint32_t count);

/* The ranks are independent: one that fails does not end the job, unless others may wait for it.
 * They may if it has connected and not finalized, and if it has not connected but ranks of its
 * program do. Its end is then recorded, and cause_conclude makes the first one the cause. asked:
 * the option or the key that says so, for the advice; static. NULL: a rank that fails ends it. */
void cause_continue(struct cause *cause, const char *asked);

/* Each returns true when this event is the job's first cause, that is, when the job must now be
 * ended (false for orderly ends and for everything after the first cause). Ranks that the map does
 * not have are ignored, and so is a second end of a rank. */

/* The rank has connected to an API; ranks of its program that ended before, or will end, without
 * connecting are then CAUSE_NO_INIT. One call for each program is enough, more do no harm. */
bool cause_connected(struct cause *cause, uint32_t rank, enum cause_api api);
bool cause_rank_end(struct cause *cause, const struct cause_end *end);
/* What ranks of this one's program connect to, as far as known. */
enum cause_api cause_api_of(const struct cause *cause, uint32_t rank);
/* text may be empty; status as given to MPI_Abort: the job's is its low 8 bits, 1 if those are 0.
 */
bool cause_abort(struct cause *cause, uint32_t rank, uint32_t worker, const char *host, int status,
                 const char *text);
bool cause_failure(struct cause *cause, const struct drarun_error *err);
/* As cause_failure, of one worker: its agent or its connection is lost. While cause_may_change it
 * takes the place of what a rank of another worker ran into because of it. node may be NULL. */
bool cause_worker_failure(struct cause *cause, uint32_t worker, const char *node,
                          const struct drarun_error *err);
bool cause_timeout(struct cause *cause, int64_t limit_ms);
bool cause_interrupted(struct cause *cause, int signo);
/* The ranks were sent this signal, so long before the job's timeout: a rank that it kills is told
 * so. */
void cause_warned(struct cause *cause, int signo, int64_t before_ms);

/* ---- in a cluster ---- */

/* The workers are pods. A pod's end becomes known later than the broken connection, the signal of
 * its ranks and the aborts of their peers that it brought about, so that cause_may_change is then
 * true after these too, and cause_pod takes their place until cause_settle. */
void cause_expect_pods(struct cause *cause);
bool cause_pod(struct cause *cause, const struct cause_pod *pod);
/* Of every end but POD_END_NONE: what happened, as it follows the worker's name, what to do, and
 * the job's exit status. */
const char *cause_pod_deed(enum pod_end end);
const char *cause_pod_cure(enum pod_end end);
int cause_pod_end_status(enum pod_end end);
/* What often leads to a signal that drarun did not send. NULL: nothing is known. */
const char *cause_signal_advice(int signo);
/* No launcher came in time, so the agents ended the ranks. pod: of the one that was lost; NULL. */
bool cause_launcher_lost(struct cause *cause, const char *pod);

/* What follows from a first cause for the next attempt. */
struct cause_restart {
    bool retry;      /* another try may end otherwise: `restarts` counts it */
    bool avoid_node; /* the node is not to be used again */
    bool new_claims; /* the claims do not fit any more; else they are kept where possible */
};
struct cause_restart cause_restart(const struct cause *cause);
/* The same of a pod's end that cause_json told as "cause"; of others nothing but retry is known. */
struct json_t;
struct cause_restart cause_restart_told(const struct json_t *cause);

/* ---- what it came to ---- */

/* The job is over. If nothing has ended it but ranks have failed (cause_continue), the first of
 * these is the cause, and no event replaces it. */
void cause_conclude(struct cause *cause);
/* The cause is of that kind: all ranks have ended by themselves. */
bool cause_ran_to_end(const struct cause *cause);
/* How many ranks have failed without ending the job, and the sentence of one, without its newline.
 */
uint32_t cause_failed(const struct cause *cause);
void cause_explain_failed(const struct cause *cause, uint32_t index, struct buf *out);

/* How many ranks had an MPI library loaded though they connected to nothing (RankEnd.mpi_library):
 * when every rank has ended in order and none has connected, they were N jobs of one rank each,
 * which cause_explain then says. The status stays 0. */
void cause_singletons(struct cause *cause, uint32_t ranks_with_mpi_library);

/* A rank's crash closes its connections before it can be reaped, and others may exit or abort of
 * that first. So until cause_settle, a crash takes the place of an exit or abort as the first
 * cause, and the exit of a rank that used its API, neither finalized nor aborted, takes that of
 * another's abort; cause_may_change says whether waiting is of use. */
bool cause_may_change(const struct cause *cause);
void cause_settle(struct cause *cause);

enum cause_kind cause_kind(const struct cause *cause);
/* The exit status of the job so far: 0 while there is no cause. */
int cause_status(const struct cause *cause);
/* How many ranks have ended. */
uint32_t cause_ended(const struct cause *cause);

/* The sentence(s) that name the first cause once: rank, worker, host, signal or status, core dump,
 * OOM kill, how long it ran, its last lines of stderr, and what to do where the pattern is known
 * (ended before MPI_Init while others wait; exit without finalize; N singletons; SIGPIPE because
 * stdout was closed; SIGILL; 127/126). Then up to CAUSE_FAILED_SHOWN other ranks that have failed.
 * Lines end in newlines; empty when there is nothing to say.
 * typed: an option has set the job's timeout, which is then named. */
#define CAUSE_FAILED_SHOWN 20
void cause_explain(const struct cause *cause, bool typed, struct buf *out);

/* The report of --output json as one JSON object (jansson), schema in docs/design/006-ends.md:
 * {"status","cause":null or {"kind","text",...},"ranks","ended"}, and "failed" and "failures" if
 * ranks have failed without ending the job. The caller adds its own keys. NULL without memory. */
struct json_t *cause_json(const struct cause *cause);
/* What kept the job from an end of its ranks, by the "cause" of such a report. NONE: they came to
 * one, or the cluster ended a worker. */
enum drarun_errkind cause_reported_error(const struct json_t *cause);
/* Whether a rank's own end is that cause: the report's status is the rank's then. */
bool cause_reported_rank(const struct json_t *cause);
/* Whether the loss of the launcher is that cause, which says nothing of the workers. */
bool cause_reported_launcher(const struct json_t *cause);

#endif
