/* SPDX-License-Identifier: Apache-2.0 */
/* A job of the cluster as somebody outside sees it: the launcher's log as it is written, what is
 * awaited, and the end, from the API alone. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_H

#include "launcher/cluster/cluster.h"

struct follow_options { /* borrowed */
    const char *job, *namespace;
    const char *uid; /* of its launcher Job: an earlier job of that name is not it; NULL: any */
    bool output;     /* the ranks' output and the launcher's own lines are shown */
    bool cancel;     /* a signal ends the job; else it ends the following alone */
    bool label, quiet;
    bool once;          /* the log as it is, without waiting for more */
    int32_t rank;       /* of this rank alone; -1: of all */
    int64_t timeout_ms; /* 0: none */
};

/* Until the job ends (or its time is over: 124), and its exit status. What cannot be had is said.
 */
int follow_job(struct cluster *cluster, const struct follow_options *options);

#endif
