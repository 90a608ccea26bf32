/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a job that is followed: its status document, its launcher Job and the Job's
 * pods, which are watched, and what the end of the launcher's log says ahead of them. Loop thread
 * only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_STATE_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_STATE_H

#include "launcher/cluster/follow/pod.h"

struct follow_state_owner {
    void (*changed)(void *arg); /* something is to be looked at */
    void (*chosen)(void *arg);  /* the log of pod.name is to be read from now on */
    void *arg;
};

struct follow_state {
    const char *job, *namespace, *uid; /* borrowed; uid of its launcher Job, NULL: any */
    bool choose;                       /* a log is to be read: a pod is chosen */
    struct follow_state_owner owner;
    struct kube_watch *status, *pods, *jobs;
    struct follow_pod pod;
    json_t *doc;      /* the status document, or NULL */
    char *led_by;     /* whose log has the output, by the record `ended`; NULL: none was read */
    int64_t ended_ms; /* since when it is known that the job ended; 0: it goes on */
    int exit_status;
    bool gone;                   /* the job was deleted: follow_state_is_gone */
    struct drarun_error trouble; /* why it cannot be followed; code 0: nothing */
    struct drarun_error failed;  /* its launcher Job has failed; code 0: it has not */
    int64_t failed_ms;           /* since when that is known */
    bool completed;              /* its launcher Job has: the job has succeeded */
    bool last_word;              /* since either the document was read once more */
    struct kube_client *client;  /* borrowed */
    struct kube_call *asking;    /* for that document */
};

/* Begins to watch; follow_state_done is due also on failure. */
int follow_state_watch(struct follow_state *state, struct kube_client *client,
                       struct drarun_error *err);
void follow_state_done(struct follow_state *state);

/* The record `ended` of a launcher's log, which may be ahead of the document. */
void follow_state_take_end(struct follow_state *state, const json_t *record);
/* Chooses again whose log is to be read. */
void follow_state_choose(struct follow_state *state);

/* Both lists that tell of logs are there. */
bool follow_state_knows_logs(const struct follow_state *state);
bool follow_state_is_running(const struct follow_state *state);
bool follow_state_is_suspended(const struct follow_state *state);
/* Its launcher Job is there, and not about to be deleted. */
bool follow_state_has_job(const struct follow_state *state);
/* The queue of its launcher Job, as object_queue; NULL: none. Valid until the loop runs. */
const char *follow_state_queue(const struct follow_state *state);
/* It was deleted, maybe before it was watched. */
bool follow_state_is_gone(struct follow_state *state);
/* Its ConfigMap, or NULL. */
const json_t *follow_state_map(const struct follow_state *state);
/* A launcher has begun, or had. */
bool follow_state_has_launcher(const struct follow_state *state);
/* Who leads the job, or led it to its end; NULL: not known. And whether that pod is there. */
const char *follow_state_leader(const struct follow_state *state);
bool follow_state_leader_is_there(const struct follow_state *state);
/* How many lines the log of a pod has at least, once the job has ended or its workers are kept; 0:
 * not known. */
uint64_t follow_state_lines(const struct follow_state *state, const char *pod);
/* Of the job's end; NULL: none is known. */
const json_t *follow_state_cause(const struct follow_state *state);

#endif
