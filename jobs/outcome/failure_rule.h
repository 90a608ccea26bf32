/* SPDX-License-Identifier: Apache-2.0 */
/* What follows when an attempt has failed: the job's own rules (failurePolicy), and where none fits
 * the built-in table (docs/design/006-ends.md). Pure. */
#ifndef DRARUN_JOBS_FAILURE_RULE_H
#define DRARUN_JOBS_FAILURE_RULE_H

#include <jansson.h>
#include <stdbool.h>
#include "jobs/outcome/cause.h"
#include "jobs/spec/spec.h"

/* Which number of the spec counts the next attempt. */
enum failure_count {
    FAILURE_COUNT_NONE = 0,
    FAILURE_COUNT_RESTARTS,
    FAILURE_COUNT_INFRASTRUCTURE,
    FAILURE_COUNTS
};

struct failure_decision {
    bool restart; /* another attempt, if its number allows one */
    enum failure_count count;
    bool avoid_node; /* no later attempt uses the node of the cause */
    bool new_claims; /* the claims do not fit any more; else they are kept where possible */
    int rule;        /* which one of the policy decided; -1: none */
};

/* end: an object with the members "status" and "cause" of cause_json, as a report or a line of a
 * status document's history is. table: what the built-in table says of it. */
struct failure_decision failure_decide(const struct failure_policy *policy, const json_t *end,
                                       struct cause_restart table);

/* How many attempts beyond the first the spec allows of a number; UINT32_MAX: any. */
uint32_t failure_allowed(const struct job_spec *spec, enum failure_count count);
/* The loss of the launcher would end the job for good; used: attempts so far, by number. */
bool failure_launcher_is_last(const struct job_spec *spec, const uint32_t used[FAILURE_COUNTS]);

#endif
