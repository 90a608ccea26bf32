/* SPDX-License-Identifier: Apache-2.0 */
/* A job on this machine, with no cluster: ranks over PMIx as `drarun -n 4 ./app` starts them. The
 * job engine needs a process of its own (signals, children, limits), so the library starts the
 * program drarun for it, which must be installed; any number of jobs may run at the same time, and
 * nothing of the caller's process is changed. Its children, SIGCHLD and fork are the caller's: the
 * status is taken by pid alone, and a caller that has taken it already loses nothing. */
#ifndef DRARUN_LOCAL_H
#define DRARUN_LOCAL_H

#include "drarun/job.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_local;

struct drarun_local_options {
    size_t size;             /* of this struct */
    unsigned ranks;          /* 0: 1 for each worker */
    unsigned workers;        /* agents, each as if a machine of its own; 0: 1 */
    const char *launch;      /* "pmix"; "env": ranks find each other by variables. NULL: pmix */
    const char *bind;        /* to CPUs, as drarun --bind. NULL: the default */
    const char *directory;   /* where the ranks run. NULL: here */
    const char *const *env;  /* "NAME=VALUE", beside this process' environment */
    const char *const *more; /* further options of drarun run, word by word */
    const char *program;     /* drarun. NULL: that of the library's installation, else of PATH */
    /* As of drarun_follow_options: what a rank wrote; other than 0 ends the job. NULL: dropped. */
    int (*output)(void *arg, unsigned rank, int is_stderr, const char *data, size_t length);
    /* As of drarun_cluster_options. */
    void (*log)(void *arg, enum drarun_loglevel level, const char *text);
    void *arg;
    enum drarun_loglevel level; /* the most that log gets; 0 is errors */
    long long timeout_ms;       /* 0: none; then the job ends, kind DRARUN_ERR_TIMEOUT */
    /* A job whose ranks, launch, environment (values alone) and command are taken where nothing
     * above says them. What is a cluster's (image, devices, claims) is not heeded. With several
     * roles each runs its own command in its own workers: ranks, workers, launch and a command are
     * refused, env and directory hold for all. NULL: none */
    const struct drarun_spec *spec;
};
DRARUN_DEFINE_INIT(drarun_local_options)

/* Starts command, which ends with NULL (NULL: that of options->spec), and returns at once. Kind
 * DRARUN_ERR_NOT_FOUND: there is no program drarun. The ranks' standard input is empty. */
DRARUN_API int drarun_local_start(const char *const *command,
                                  const struct drarun_local_options *options,
                                  struct drarun_local **ret_local, struct drarun_error *err);
/* For poll and its like: readable while drarun_local_dispatch has something to do. */
DRARUN_API int drarun_local_fd(const struct drarun_local *local);
/* Calls back with what has come, without waiting. 1: the job has ended. */
DRARUN_API int drarun_local_dispatch(struct drarun_local *local, struct drarun_error *err);
/* Until the job ends, with *ret_status as of drarun_job_follow; ret_status may be NULL. Called when
 * it has ended it returns at once. An error says why there is no status of a rank: the kind is that
 * of `drarun`'s own exit status; DRARUN_ERR_INTERRUPTED after drarun_local_signal. */
DRARUN_API int drarun_local_wait(struct drarun_local *local, int *ret_status,
                                 struct drarun_error *err);
/* SIGINT, SIGTERM: ranks get SIGTERM and the job ends; others go to the ranks. From any thread or
 * signal handler, until it is freed. */
DRARUN_API void drarun_local_signal(struct drarun_local *local, int signo);
/* A job that still runs is ended, which may take some seconds. */
DRARUN_API void drarun_local_free(struct drarun_local *local);

/* drarun_local_start, drarun_local_wait. */
DRARUN_API int drarun_local_run(const char *const *command,
                                const struct drarun_local_options *options, int *ret_status,
                                struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
