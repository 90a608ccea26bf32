/* SPDX-License-Identifier: Apache-2.0 */
/* What gang_facts.c reads from the workers and gang.c decides from. */
#ifndef DRARUN_JOBS_GANG_PRIVATE_H
#define DRARUN_JOBS_GANG_PRIVATE_H

#include "jobs/gang/gang.h"
#include "jobs/gang/gang_sums.h"

#define GANG_NOBODY UINT32_MAX

/* What happened, by falling rank: the first that holds is the event. */
enum gang_event {
    GANG_EVENT_NONE = 0,
    GANG_EVENT_FATAL,     /* something that waiting does not cure */
    GANG_EVENT_DEADLINE,  /* a clock has run down */
    GANG_EVENT_RESUMED,   /* no claim and no pod is left, and the pause is over */
    GANG_EVENT_LOST,      /* a worker ended or was taken away */
    GANG_EVENT_SUSPENDED, /* not admitted (any more) */
    GANG_EVENT_ADMITTED,
    GANG_EVENT_UNPLACED, /* a worker has no claim or no node (any more) */
    GANG_EVENT_BLOCKED,  /* some hold, others cannot get theirs: the grace time is over */
    GANG_EVENT_NO_NODE,  /* no node has what this step of the ladder asks for */
    GANG_EVENT_PLACED,   /* every worker has its claim and its node */
    GANG_EVENT_UP,       /* every worker's first container runs */
    GANG_EVENT_CHECKED,  /* every agent has inspected its worker */
    GANG_EVENT_COUNT,
};

/* Its image cannot be had, however long one waits: err. */
bool gang_image_is_lost(const struct pod_state *pod, struct drarun_error *err);

/* The workers at one look. */
struct gang_facts {
    uint32_t count, allocated, placed, up, holding, present;
    uint32_t claimed; /* claims that exist, allocated or not */
    uint32_t pending; /* cannot get theirs: no node, and the scheduler has looked */
    bool queued;      /* suspended or gated by somebody else */
    bool node_comes, image_comes, releasing;
    int64_t ordered_ms; /* the first node that was ordered for a worker without one; 0: none */
    bool vanished;      /* a pod or a claim was there and is not */
    uint32_t lost;      /* workers, GANG_NOBODY: none */
    uint32_t stranded;  /* has a node, and its claim has no devices */
    uint32_t blocked;
    uint32_t trouble; /* what its container or claim names does not exist */
    uint32_t fatal;
    enum drarun_errkind fatal_kind;
    char fatal_text[512];   /* what and the cure, without the worker */
    uint32_t refused;       /* whose claim the API server refuses; GANG_NOBODY: pods, or none */
    char refused_text[512]; /* "": nothing is refused */
};

void gang_facts(const struct gang_input *input, struct gang_facts *ret_facts);

#endif
