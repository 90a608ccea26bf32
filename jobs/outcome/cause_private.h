/* SPDX-License-Identifier: Apache-2.0 */
/* What cause.c and cause_pod.c decide and cause_text.c puts into words; cause_story.c holds one
 * event. */
#ifndef DRARUN_JOBS_CAUSE_PRIVATE_H
#define DRARUN_JOBS_CAUSE_PRIVATE_H

#include "jobs/outcome/cause.h"

/* One event, with copies of its strings; these are valid UTF-8, and NULL without memory too. */
struct cause_story {
    enum cause_kind kind;
    uint32_t rank, worker;
    int code, signo;
    bool core, oom;
    int64_t ran_us;            /* 0: not known */
    int64_t limit_ms;          /* CAUSE_TIMEOUT */
    enum drarun_errkind error; /* CAUSE_FAILURE */
    enum pod_end end;          /* CAUSE_POD */
    bool of_worker;            /* CAUSE_FAILURE: worker is set */
    char *host;
    char *pod;    /* its name */
    char *text;   /* of the abort or the failure */
    char *advice; /* of the rank's agent */
    char *tail;   /* last lines of stderr */
};

struct cause_app {
    enum cause_api api;      /* what its ranks connect to; none so far: CAUSE_API_NONE */
    struct cause_story idle; /* its first rank that ended in order unconnected; kind NONE: none */
};

struct cause {
    const struct rankmap *map;
    struct cause_app *apps;
    bool *ended;   /* by rank */
    bool *aborted; /* by rank: it asked for the end of the job */
    uint32_t ended_count;
    uint32_t singletons;
    uint32_t decisive_first, decisive_count; /* cause_decide_by; 0: none */
    uint32_t decisive_left;                  /* of them, that have not ended in order */
    int warned_signo;                        /* cause_warned; 0: not yet */
    int64_t warned_ms;                       /* so long before the timeout */
    bool pods;             /* the workers are pods, and their ends become known late */
    const char *continues; /* cause_continue: asked; NULL: a rank that fails ends the job */
    bool needed;           /* the first cause: other ranks could wait for its rank */
    bool ran_to_end;
    bool settled;               /* a stronger end no longer takes the first's place */
    struct cause_story *failed; /* ranks that have failed without ending the job, in this order */
    uint32_t failed_count, failed_size;
    struct cause_story first;
    struct cause_story
        crash; /* a crash that became known after an exit or abort; kind NONE: none */
};

/* Whether the story is of one rank. */
bool cause_has_rank(enum cause_kind kind);
bool cause_were_singletons(const struct cause *cause);

/* A copy that a terminal and JSON can take; NULL of NULL, of "" and without memory. */
char *cause_clean_text(const char *text);
struct cause_story cause_story_of_end(const struct cause_end *end, enum cause_kind kind);
struct cause_story cause_story_copy(const struct cause_story *story);
void cause_story_done(struct cause_story *story);
/* Whether a rank ends like this when another one, or its worker, has vanished: MPI libraries abort
 * or exit, UCX raises SIGABRT. */
bool cause_story_may_echo(const struct cause_story *story);
/* Makes it the first cause when there is none yet; takes its strings either way. */
bool cause_tell_take(struct cause *cause, struct cause_story *story);

/* The first cause may be what a pod's end looks like before it is known. */
bool cause_pod_may_follow(const struct cause *cause);

/* CAUSE_POD: what stands behind the worker, the advice or NULL. */
void cause_pod_sentence(const struct cause_story *story, struct buf *out);
const char *cause_pod_advice(enum pod_end end);

#endif
