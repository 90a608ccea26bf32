/* SPDX-License-Identifier: Apache-2.0 */
/* What the files behind drarun/job.h share: call.c, cluster.c, follow.c, job.c, run.c. */
#ifndef DRARUN_LAUNCHER_CLUSTER_PUBLIC_H
#define DRARUN_LAUNCHER_CLUSTER_PUBLIC_H

#include <signal.h>
#include <sys/queue.h>
#include "drarun/job.h"
#include "lib/base/c_numbers.h"
#include "launcher/cluster/client/cluster.h"
#include "lib/base/log.h"

struct drarun_cluster {
    struct cluster cluster;
    void (*log)(void *arg, enum drarun_loglevel level, const char *text);
    void *arg;
    enum drarun_loglevel level;
    pid_t pid; /* that opened it */
    int wake;  /* eventfd */
    struct event *woken;
    volatile sig_atomic_t interrupted;
    struct loop_fd *door; /* NULL: nobody asked for a descriptor */
    struct event *driver; /* on the caller's loop; NULL: there is none */
    TAILQ_HEAD(, drarun_following) followings;
    bool busy;           /* in a call */
    bool namespace_said; /* goes before the spec's */
};

struct drarun_job {
    struct drarun_cluster *cluster;
    char *name, *namespace;
    char *uid; /* of its launcher Job; NULL: whichever job has the name */
};

/* What every call does first and last: the thread's log goes to the caller, and a connection that
 * breaks sends no SIGPIPE to the caller's program. */
struct public_call {
    struct drarun_cluster *cluster;
    struct log_scope scope;
    const struct log_scope *before;
    sigset_t mask;
    bool pending;
    struct c_numbers numbers;
};

/* call.c. -EBUSY: within another call; -EINVAL: in a child of the process that opened it. Kind
 * USAGE. */
int public_begin(struct public_call *call, struct drarun_cluster *cluster,
                 struct drarun_error *err);
void public_end(struct public_call *call);

/* follow.c. An interrupt is given to what follows now; it waits for the next one where nothing
 * does. */
void public_take_interrupt(struct drarun_cluster *cluster);

#endif
