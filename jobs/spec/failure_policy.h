/* SPDX-License-Identifier: Apache-2.0 */
/* What a job wants to follow when an attempt fails: `failurePolicy` of a spec. Values alone; which
 * rule an end meets says jobs/outcome/failure_rule.h. */
#ifndef DRARUN_JOBS_FAILURE_POLICY_H
#define DRARUN_JOBS_FAILURE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAILURE_EXIT_CODE_MAX 255
#define FAILURE_RULES_MAX 20 /* as a Job's podFailurePolicy */

/* What an attempt may end with, for `cause` of a rule: kinds of causes, and of ends of pods
 * (docs/design/006-ends.md); oom is a rank's or a pod's. */
#define FAILURE_CAUSES                                                                             \
    "exit signal abort no-finalize no-init oom failure launcher-lost pod start evicted preempted " \
    "taint device-taint node-lost node-shutdown refused deleted unknown"

enum failure_action {
    FAILURE_RESTART = 1, /* another attempt, which counts */
    FAILURE_FAIL,        /* none */
    FAILURE_IGNORE,      /* another attempt, which does not count */
};

enum failure_node { FAILURE_NODE_AVOID = 1, FAILURE_NODE_KEEP }; /* 0: the built-in table's */

/* What follows when a rank fails and no other can wait for it (jobs/outcome/cause.h). */
enum failure_of_rank { FAILURE_OF_RANK_END = 1, FAILURE_OF_RANK_CONTINUE };

struct failure_rule {
    bool on_codes[FAILURE_EXIT_CODE_MAX + 1]; /* exit statuses that a rank made the job's */
    const char *on_cause; /* a word of FAILURE_CAUSES, borrowed from the document; NULL: on_codes */
    enum failure_action action;
    enum failure_node node;
};

struct failure_policy {
    struct failure_rule *rules; /* the first that fits counts; owned */
    size_t count;
    bool apart; /* attempts after ends of the infrastructure count to its own number */
    uint32_t infrastructure_restarts; /* which is this */
    enum failure_of_rank on_rank_failure;
};

void failure_policy_done(struct failure_policy *policy);

#endif
