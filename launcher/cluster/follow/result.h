/* SPDX-License-Identifier: Apache-2.0 */
/* How the following of a job came out: the job's exit status, or the error that says what was not
 * had. Pure, but for the cause of the job's end, which is logged. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_RESULT_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_RESULT_H

#include <jansson.h>
#include "launcher/cluster/follow/end.h"
#include "lib/base/error.h"

struct follow_result_facts {
    const char *job;
    bool once;        /* the log was read as it was */
    bool runs;        /* its ranks run, and that was all that was awaited */
    bool ended;       /* the job has, with exit_status */
    bool gone;        /* the job was deleted */
    bool interrupted; /* by a signal, or by the caller */
    bool half_read;   /* a log was opened, and not read to its end */
    int exit_status;
    int signo;           /* a signal that came; negative: it has cancelled the job */
    enum follow_end end; /* of the output */
    int64_t timeout_ms;
    struct drarun_error trouble; /* what ended it early; code 0: nothing */
    struct drarun_error log_err; /* of the last try to read the log */
    const char *leader;          /* in whose log the output is; NULL: not known */
    bool leader_is_gone;         /* that pod is */
    const json_t *cause;         /* of the job's end; NULL: none is known */
};

/* As follow_result of follow.h. */
int follow_result_judge(const struct follow_result_facts *facts, int *ret_status,
                        struct drarun_error *err);

/* The errors of an interrupt, and of the time that is over. */
int follow_interrupted(const char *job, struct drarun_error *err);
int follow_timed_out(const char *job, int64_t timeout_ms, struct drarun_error *err);

#endif
