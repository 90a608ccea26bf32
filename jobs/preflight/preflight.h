/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the workers, as they say themselves, can run the job: the last check before anything
 * starts (docs/design/018-inspection.md lists what is found, when, and the words). Pure. */
#ifndef DRARUN_JOBS_PREFLIGHT_H
#define DRARUN_JOBS_PREFLIGHT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/preflight/fabric.h"
#include "jobs/derive/plan.h"
#include "jobs/preflight/reach.h"
#include "jobs/spec/spec.h"
#include "lib/base/buf.h"

#define PREFLIGHT_CODES(X)                                                                         \
    X(NOT_INSPECTED)                                                                               \
    X(NIC_MISSING)                                                                                 \
    X(VERBS_CLOSED)                                                                                \
    X(LINK_DOWN)                                                                                   \
    X(LINK_NARROW)                                                                                 \
    X(LINK_SLOW)                                                                                   \
    X(NO_GID)                                                                                      \
    X(NIC_QUEUES)                                                                                  \
    X(NIC_MEMORY)                                                                                  \
    X(NIC_UNTRIED)                                                                                 \
    X(HCA_COUNT)                                                                                   \
    X(MEMLOCK)                                                                                     \
    X(SHM)                                                                                         \
    X(GPU_MISSING)                                                                                 \
    X(GPU_CLOSED)                                                                                  \
    X(NOT_ALIGNED)                                                                                 \
    X(VERSIONS)                                                                                    \
    X(SESSION)                                                                                     \
    X(UNREACHED)                                                                                   \
    X(REACH_UNKNOWN)

enum preflight_code {
    PREFLIGHT_NONE = 0,
#define PREFLIGHT_ENUM(name) PREFLIGHT_##name,
    PREFLIGHT_CODES(PREFLIGHT_ENUM)
#undef PREFLIGHT_ENUM
        PREFLIGHT_COUNT,
};

struct preflight_worker {
    const char *pod, *node;   /* NULL: not known */
    const json_t *inspection; /* NULL: it has said nothing */
};

struct preflight_input {
    const struct job_spec *spec;
    const struct plan *plan; /* made of the workers' claims and inspections, of all roles
                              * (plan_join); NULL: of neither */
    const struct preflight_worker *workers;
    uint32_t count;
    struct fabric *fabric; /* gets what is wrong with which NIC; NULL: nobody asks */
};

struct preflight_finding {
    enum preflight_code code;
    bool refusal;    /* nothing may start; else a warning */
    uint32_t worker; /* the first that it holds for */
    uint32_t others; /* how many more it holds for, word for word */
    char *where;     /* "worker 3 (train-w-3 on node-7)", "workers 0-3 and 7" */
    char *text;      /* what is wrong */
    char *cure;      /* what would help */
};

struct preflight {
    struct preflight_finding *list; /* refusals first, then by worker */
    size_t count;
    size_t refusals;
};

/* -ENOMEM alone; what is wrong with the workers is in the findings. */
int preflight_check(const struct preflight_input *input, struct preflight *ret_preflight,
                    struct drarun_error *err);
/* The same of NICs that were to reach each other: plan and inspections are not looked at. */
int preflight_reach(const struct preflight_input *input, const struct reach *reach,
                    struct preflight *ret_preflight, struct drarun_error *err);
void preflight_done(struct preflight *preflight);

const char *preflight_name(enum preflight_code code);
/* One sentence each without a full stop, of every finding with the code; a finding's own text and
 * cure say more. NULL: of no code. */
const char *preflight_meaning(enum preflight_code code);
const char *preflight_cure(enum preflight_code code);
/* "worker 3 (...): its memlock limit is ...: add ...": one line. */
void preflight_line(const struct preflight_finding *finding, struct buf *out);
/* 0 without a refusal; else -EPERM with kind DRARUN_ERR_PREFLIGHT and the first one's line, "and N
 * more". */
int preflight_result(const struct preflight *preflight, struct drarun_error *err);

#endif
