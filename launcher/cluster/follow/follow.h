/* SPDX-License-Identifier: Apache-2.0 */
/* A job of the cluster as somebody outside sees it: the launcher's log as it is written, what is
 * awaited, and the end, from the API alone. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_H

#include <signal.h>
#include "launcher/cluster/client/cluster.h"
#include "launcher/programs/signals.h"

/* A line of a rank, or a piece of a long one; nonzero: no more of them, and the following ends. */
typedef int (*follow_output_fn)(void *arg, uint32_t rank, bool is_stderr, const char *data,
                                size_t length);

struct follow_options {
    const char *job, *namespace;
    const char *uid; /* of its launcher Job: an earlier job of that name is not it; NULL: any */
    bool output;     /* the ranks' output and the launcher's own lines are shown */
    bool cancel;     /* a signal ends the job; else it ends the following alone */
    bool label, quiet;
    bool *running;    /* set, and the following ends, once the ranks run; NULL: it goes on */
    bool once;        /* the log as it is, without waiting for more */
    int32_t rank;     /* of this rank alone; -1: of all */
    bool timestamps;  /* in the foreground: the time that the log has before each line */
    int64_t after_ms; /* no lines from before this time, in ms since 1970; 0: all */
    uint32_t tail; /* with `once` and in the foreground: so many lines of the end, plus 1; 0: all */
    int64_t timeout_ms;      /* 0: none */
    int64_t since_ms;        /* when its time has begun, by clock_ms; 0: now */
    bool patient;            /* through.h: where the API server cannot be asked it asks again */
    bool foreground;         /* this process is the job's: its signals, its terminal, its output */
    struct signals *signals; /* in the foreground: taken over, also on failure; NULL: own ones */
    int signo;               /* that came before; 0: none */
    /* else: where output goes; and what is awaited, told once a second while it is; may be NULL */
    follow_output_fn put;
    void (*progress)(void *arg, const char *text);
    void *arg;
    const volatile sig_atomic_t *stop; /* nonzero ends it: follow_look */
};

struct follow;
/* It is over: follow_result tells how. Called once, from the loop; may free it. */
typedef void (*follow_ended_fn)(void *arg);

/* Begins to follow; all of its callbacks come from the loop. Options are copied with their texts,
 * but for stop. */
int follow_new(struct cluster *cluster, const struct follow_options *options, follow_ended_fn ended,
               void *arg, struct follow **ret_follow, struct drarun_error *err);
/* No callback afterwards; may be called from one. NULL is fine. */
void follow_free(struct follow *follow);
/* To be called when stop has been set. */
void follow_look(struct follow *follow);
/* Once it is over. 0 and the job's exit status, with the words of its cause logged (0 too where it
 * runs, and `running` says so). Else -errno: kind DRARUN_ERR_TIMEOUT (its time is over, or the log
 * as it is was read: no error with `once`), DRARUN_ERR_INTERRUPTED (-ECANCELED; *ret_status is that
 * of a signal), or what cannot be had. */
int follow_result(const struct follow *follow, int *ret_status, struct drarun_error *err);

/* Both at once: runs the loop until it is over. */
int follow_until_end(struct cluster *cluster, const struct follow_options *options, int *ret_status,
                     struct drarun_error *err);
/* Says what cannot be had; returns the exit status. status: of follow_result. */
int follow_failed(const struct drarun_error *err, int status);
/* In the foreground until the job ends, with what cannot be had said; returns the exit status. */
int follow_job(struct cluster *cluster, const struct follow_options *options);

#endif
