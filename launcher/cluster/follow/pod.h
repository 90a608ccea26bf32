/* SPDX-License-Identifier: Apache-2.0 */
/* Which pod's log is a job's. The launcher Job has one pod at a time, but its controller may make
 * one too many; that one waits for the Lease of the other. So:
 *
 *   whom the status document names leads while its container runs, and was the last to lead when
 *   the job has ended: its log is read, and nobody else's, whichever Job has made it;
 *   where nobody leads, whose log is read goes on to be read while its container runs;
 *   else a pod of the launcher Job whose container has begun. One that has not is coming; what
 *   keeps it from starting is in nobody's log, and Events tell it.
 *
 * Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_POD_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_POD_H

#include "jobs/gang/news.h"
#include "jobs/gang/waiting.h"
#include "jobs/spec/spec.h"
#include "lib/kube/watch.h"

struct follow_pod {
    const char *namespace, *job, *uid; /* borrowed; uid of the launcher Job, NULL: any */
    const struct kube_watch *pods;     /* of the launcher Job's name; borrowed */
    char *name;                        /* whose log is to be read; NULL: none yet */
    bool coming;                /* one is there, and the API does not know yet that it runs */
    struct news news, job_news; /* of the pod that is coming, and of its Job */
};

/* What is known of the launcher from elsewhere. */
struct follow_leader {
    const char *pod; /* that the status document names, or NULL; borrowed */
    bool ended;      /* the job has */
};

/* An Event of the namespace. */
void follow_pod_hear(struct follow_pod *chosen, const json_t *event);
/* Why no launcher has started yet: waiting_of_launcher. */
void follow_pod_waits(const struct follow_pod *chosen, struct waiting_launcher *ret_launcher);
/* The same of the pod that is to follow the leader, which last renewed its Lease at renewed_ms: one
 * that is there, or that was refused since. Text NULL also where there is neither. */
void follow_pod_successor(const struct follow_pod *chosen, const char *leader, int64_t renewed_ms,
                          struct waiting_launcher *ret_launcher);
/* Whether that has an end, after so long: gang_judge_launcher. 0 also where one has started. */
int follow_pod_judge(const struct follow_pod *chosen, const struct spec_timeouts *timeouts,
                     int64_t waited_ms, int64_t *ret_limit_ms, struct drarun_error *err);

/* Frees its name and news. */
void follow_pod_done(struct follow_pod *chosen);

/* This pod is there, or has changed. True: another log than before is to be read, that of name. */
bool follow_pod_see(struct follow_pod *chosen, const struct follow_leader *leader,
                    const json_t *pod);
/* The same for what the status document says now: the pod that leads, where it is another one than
 * before; or one that may be about to. */
bool follow_pod_look(struct follow_pod *chosen, const struct follow_leader *leader);

/* NULL: there is no pod of that name. name may be NULL. */
const json_t *follow_pod_find(const struct follow_pod *chosen, const char *name);
/* The launcher's container of a pod: it runs; it has ended. Both false: it has not begun, or there
 * is no such pod. */
bool follow_pod_is_alive(const struct follow_pod *chosen, const char *name);
bool follow_pod_has_ended(const struct follow_pod *chosen, const char *name);
/* The pod of the launcher Job whose container runs; NULL: there is none. Borrowed. */
const char *follow_pod_running(const struct follow_pod *chosen);

#endif
