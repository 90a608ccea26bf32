/* SPDX-License-Identifier: Apache-2.0 */
/* Which pod's log is a job's. The launcher Job has one pod at a time, but its controller may make
 * one too many, above all for a name that was used before; that one waits for the Lease of the
 * other. So:
 *
 *   whom the status document names leads while its container runs, and was the last to lead when
 *   the job has ended: its log is read, and nobody else's;
 *   where nobody leads, whose log is read goes on to be read while its container runs;
 *   else a pod of the launcher Job whose container has begun. One that has not is coming, and what
 *   keeps it from starting is told once, since it is in nobody's log.
 *
 * Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_POD_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_POD_H

#include "lib/kube/watch.h"

struct follow_pod {
    const char *namespace, *uid;   /* borrowed; uid of the launcher Job, NULL: any */
    const struct kube_watch *pods; /* of the launcher Job's name; borrowed */
    char *name;                    /* whose log is to be read; NULL: none yet */
    bool coming;                   /* one is there, and the API does not know yet that it runs */
    bool told;                     /* what keeps it from starting was said */
};

/* What is known of the launcher from elsewhere. */
struct follow_leader {
    const char *pod; /* that the status document names, or NULL; borrowed */
    bool ended;      /* the job has */
};

/* Frees its name. */
void follow_pod_done(struct follow_pod *chosen);

/* This pod is there, or has changed. True: another log than before is to be read, that of name. */
bool follow_pod_see(struct follow_pod *chosen, const struct follow_leader *leader,
                    const json_t *pod);
/* The same for what the status document says now: the pod that leads, where it is another one than
 * before; or one that may be about to. */
bool follow_pod_look(struct follow_pod *chosen, const struct follow_leader *leader);

#endif
