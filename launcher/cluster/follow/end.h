/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the output of a job that has ended was read to its end. It is in one log: that of the
 * launcher that led the job to its end, whose last line is the record `ended`. Another pod may
 * write that record, too: a launcher that finds the job ended tells its end again, without output.
 * Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_END_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_END_H

#include <stdbool.h>
#include <stdint.h>

#define FOLLOW_END_SILENT_MS 60000 /* timeout without a byte of the log */
#define FOLLOW_END_GONE_MS 5000    /* the same when no pod has the log */

enum follow_end {
    FOLLOW_END_AWAITED = 1,
    FOLLOW_END_READ, /* all of it, or there is none to be read */
    FOLLOW_END_LOST, /* it cannot be had */
};

struct follow_end_facts {
    const char *leader;   /* who led the job to its end; NULL: not known */
    const char *pod;      /* whose log is read; NULL: none */
    bool recorded;        /* that log has the record `ended` */
    bool closed;          /* that log was read after its container had ended, to its end */
    bool open;            /* its bytes may be on their way */
    bool pods_known;      /* the list of pods is there, */
    bool leader_is_there; /* and the leader's is in it */
    bool pod_is_coming;   /* a launcher's pod is there whose container has not begun */
    bool refused;         /* this user may not read logs */
    int64_t silent_ms;    /* since the job's end and the log's last bytes */
};

enum follow_end follow_end_judge(const struct follow_end_facts *facts);
/* In how many ms more silence alone may be judged otherwise; 0: never. */
int64_t follow_end_next_ms(int64_t silent_ms);

#endif
