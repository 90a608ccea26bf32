/* SPDX-License-Identifier: Apache-2.0 */
/* All or nothing: what an attempt of a job does next, from the states of its workers and the time.
 * Pure; the table and its rules are docs/design/016-waiting.md. The owner of the gang calls
 * gang_decide whenever something has changed and at the deadline that it named, and does what it
 * says. The same facts and times give the same answer, after a restart too (gang_load). */
#ifndef DRARUN_JOBS_GANG_H
#define DRARUN_JOBS_GANG_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"

#define GANG_GRACE_MS 5000 /* nothing has moved for so long before a gang gives up its part */
#define GANG_GROUP_GRACE_MS 30000 /* where the scheduler places all or none */
#define GANG_PAUSE_MIN_MS 1000    /* before the second try; doubles with each */
#define GANG_PAUSE_MAX_MS 60000
#define GANG_CONFIG_GRACE_MS 10000 /* objects that a worker names may come after it, quota too */
#define GANG_STRANDED_MS 10000     /* for news of a claim that come after its pod's */
#define GANG_PULL_TRIES 4          /* of an image that its registry does not have */
#define GANG_STEP_NONE UINT_MAX
#define GANG_REASON_MAX 256 /* bytes of text that is kept of the last try */

enum gang_phase {
    GANG_QUEUED = 1, /* suspended, not admitted, or gated by somebody */
    GANG_PLACING,    /* claims and nodes */
    GANG_PULLING,    /* images, sandboxes, init containers */
    GANG_STARTING,   /* agents are dialled and inspect their workers */
    GANG_RUNNING,
    GANG_RELEASING, /* claims and pods go, and come again once the pause is over */
    GANG_ENDED,
};

enum gang_action {
    GANG_WAIT = 1,
    GANG_RELEASE_AND_RETRY, /* delete the attempt's pods and claims; create them again when asked */
    GANG_NEXT_STEP,         /* the same, with the claims of the ladder's next step */
    GANG_CREATE, /* all are gone and the pause is over: create claims and pods of `step` */
    GANG_START,  /* every worker is up and checked: start the ranks */
    GANG_FAIL,   /* release everything; the job has ended with the error */
};

/* A deadline runs for each part of a job's way; the limits are the spec's timeouts. */
enum gang_clock {
    GANG_CLOCK_NONE = 0,
    GANG_CLOCK_QUEUE,
    GANG_CLOCK_NODES,
    GANG_CLOCK_ALLOCATION,
    GANG_CLOCK_IMAGE_PULL,
    GANG_CLOCK_START,
    GANG_CLOCK_TOTAL,
    GANG_CLOCK_COUNT,
};

/* What the launcher knows of the cluster's slices (lib/dra/predict.h) for the present step. */
enum gang_forecast {
    GANG_FORECAST_UNKNOWN = 0, /* the slices cannot be read, or nothing was predicted */
    GANG_FORECAST_FITS,        /* with what is free now */
    GANG_FORECAST_FULL,        /* only once others give something back */
    GANG_FORECAST_NEVER,       /* not even an empty cluster has it */
    GANG_FORECAST_AWAITED,     /* they are being read: nothing is known yet */
};

struct waiting_group;
struct gang_sums; /* gang_sums.h */

struct gang_input {
    int64_t now_ms; /* since 1970, by a clock that never goes back */
    const struct spec_timeouts *timeouts;
    const struct pod_state *workers;
    uint32_t count;
    const struct gang_sums *sums; /* of these workers; NULL: they are read */
    bool later_try;     /* the job's workers have been created before: a quota is waited for */
    uint32_t inspected; /* workers whose agents were dialled and have reported what they hold */
    unsigned steps;     /* of the ladder (claims_attempts) */
    bool suspended;     /* spec.suspend, or the worker Job is suspended (Kueue) */
    const char *suspended_by; /* who, and its message; NULL: the spec */
    bool scheduler_waits;     /* the scheduler places all workers or none (PodGroup) */
    enum gang_forecast forecast;
    unsigned next_step;   /* with GANG_FORECAST_NEVER: the later step that places the most workers;
                             GANG_STEP_NONE: none does; 0: not known */
    const char *shortage; /* prediction.shortage, or NULL: for the error's text */
    const char *refused;  /* why this try's workers could not be created, which may pass (a quota
                             that is used up); NULL: they were. What is there of them is released */
    const struct news *job;            /* of the worker Job (template mode), or NULL */
    const struct waiting_group *group; /* as waiting_input has it */
    bool spread;                       /* one worker per node by placement.spread */
    const char *no_class; /* a DeviceClass of the job's that is not there (any more), or NULL */
};

/* All of it is plain: copy it, and keep it over a restart with gang_save and gang_load. */
struct gang {
    enum gang_phase phase;
    int64_t phase_since_ms;
    int64_t since_ms;          /* the total clock: the job's begin, and as much later as earlier
                                  attempts were queued */
    uint64_t seed;             /* of the jitter: the job's uid, hashed */
    uint32_t tries;            /* releases so far, all steps */
    unsigned step;             /* of the ladder, from 0 */
    int64_t resume_ms;         /* GANG_RELEASING: the pause's end */
    int64_t blocked_ms;        /* since when nothing moves; 0: not blocked */
    uint32_t blocked_progress; /* what was there then: any progress restarts the time */
    uint32_t seen;             /* pods that were there at once */
    uint32_t seen_claims;      /* likewise */
    int64_t trouble_ms;        /* since when what a worker names does not exist, or pods or claims
                                  are refused; 0: neither */
    int64_t stranded_ms;       /* since when a worker has a node and a claim without devices; 0 */
    enum gang_clock ticking;   /* besides the total clock */
    int64_t ticking_since_ms;
    int64_t spent_ms[GANG_CLOCK_COUNT]; /* before ticking_since_ms */
    int64_t timings_ms[GANG_ENDED + 1]; /* spent in each phase that is over */
    char reason[GANG_REASON_MAX];       /* why the last try could not be placed; "": not known */
};

struct gang_decision {
    enum gang_phase phase;
    enum gang_action action;
    bool changed;      /* the phase is a new one: one line in the log */
    const char *event; /* what made it so, one word of the table */
    int64_t pause_ms; /* GANG_RELEASE_AND_RETRY, GANG_NEXT_STEP: until GANG_CREATE at the soonest */
    unsigned step;    /* the claims to create */
    int64_t next_ms;  /* when to ask again at the latest; INT64_MAX: when something changes */
    enum gang_clock clock;     /* whose deadline next_ms is; NONE: a grace time or pause */
    struct drarun_error error; /* GANG_FAIL; code ETIME: a clock has run down */
    uint32_t worker; /* the worker that the error or the release is about; UINT32_MAX: none */
};

/* seed: gang_seed of the job's uid and the attempt. */
void gang_init(struct gang *gang, uint64_t seed, int64_t now_ms);
uint64_t gang_seed(const char *uid, uint32_t attempt);
/* The next attempt of the same job: as gang_init, but the total clock goes on. */
void gang_init_next(struct gang *gang, uint64_t seed, int64_t now_ms);
/* When timeouts.total (0: no limit) is over, in which time in the queue does not count; INT64_MAX:
 * never. */
int64_t gang_total_end(const struct gang *gang, int64_t total_ms);

/* What gang_decide asks of a worker, for gang_sums_set: a bit for each enum gang_mark. */
uint32_t gang_marks(const struct pod_state *worker);
/* What to do now. An unknown pair of phase and event is an error of ours (-EINVAL); the gang is
 * unchanged then. */
int gang_decide(struct gang *gang, const struct gang_input *input,
                struct gang_decision *ret_decision, struct drarun_error *err);

/* The ranks have ended, or the job is cancelled: claims and pods go and do not come again. */
void gang_end(struct gang *gang, int64_t now_ms);

/* A launcher's pod that has not started for so long. -ECANCELED: no waiting cures it; -ETIME: a
 * clock of the timeouts has run down, as it does for workers. 0: it may come; *ret_limit_ms: how
 * long it may take, 0: without limit, as with timeouts NULL. */
int gang_judge_launcher(const struct pod_state *pod, const struct spec_timeouts *timeouts,
                        int64_t waited_ms, int64_t *ret_limit_ms, struct drarun_error *err);

/* For the status document. gang_load takes what it knows and leaves the rest as gang_init makes it.
 */
json_t *gang_save(const struct gang *gang);
void gang_load(struct gang *gang, const json_t *saved);

/* "queued", "placing", ...; "queue", "nodes", ...: as the status document and the spec have them.
 */
const char *gang_phase_name(enum gang_phase phase);
const char *gang_clock_name(enum gang_clock clock);

#endif
