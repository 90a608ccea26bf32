/* SPDX-License-Identifier: Apache-2.0 */
/* A job on this machine, without a cluster: ranks over PMIx, as `drarun -n 4 ./app` starts them.
 * The job engine needs its own process (signals, children, limits), so the library runs the program
 * drarun, which must be installed. Any number of jobs may run at the same time, and the caller's
 * process is not changed. The caller may use SIGCHLD, fork and children of its own: the library
 * waits only for the pids that it started, and does not fail if the caller has already reaped
 * one. In a child of a fork, a copy of a drarun_local can only be freed, which leaves the job
 * alone. */
#ifndef DRARUN_LOCAL_H
#define DRARUN_LOCAL_H

#include "drarun/job.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_local;

struct drarun_local_options {
    size_t size;            /* of this struct */
    unsigned ranks;         /* 0: one per worker */
    unsigned workers;       /* agents, each acting as a separate machine; 0: 1 */
    const char *launch;     /* "pmix"; "env": ranks find each other through variables. NULL: pmix */
    const char *bind;       /* CPU binding, as for drarun --bind. NULL: the default */
    const char *directory;  /* working directory of the ranks. NULL: the caller's */
    const char *const *env; /* "NAME=VALUE", added to this process's environment */
    const char *const *more; /* further options of drarun run, one word each */
    const char *program; /* path of drarun. NULL: from the library's installation, else from PATH */
    /* As in drarun_follow_options. A non-zero return value ends the job. NULL: the output is
     * dropped. */
    int (*output)(void *arg, unsigned rank, int is_stderr, const char *data, size_t length);
    /* As in drarun_cluster_options. */
    void (*log)(void *arg, enum drarun_loglevel level, const char *text);
    void *arg;
    enum drarun_loglevel level; /* highest level that log receives; 0 is errors */
    long long timeout_ms;       /* the job's timeout, kind DRARUN_ERR_TIMEOUT; 0: none */
    /* A job to run here, as `drarun run --local` runs it: its image, its claims and what only a
     * cluster has do not count. With a command, ranks, workers, launch or more it supplies the
     * ones that are not given, the CPU binding and the environment (plain values only). Its workers
     * count only if ranks is not set either. Of its devices only the number of GPUs counts, as
     * ranks per worker if it sets none. If the spec has several roles, each runs its own command on
     * its own workers: ranks, workers, launch and a command are then rejected; env and directory
     * apply to all roles. NULL: none */
    const struct drarun_spec *spec;
};
DRARUN_DEFINE_INIT(drarun_local_options)

/* Starts command, a list that ends with NULL, and returns at once. NULL: the command of
 * options->spec. The ranks' standard input is empty. Kind DRARUN_ERR_NOT_FOUND: the program drarun
 * was not found. */
DRARUN_API int drarun_local_start(const char *const *command,
                                  const struct drarun_local_options *options,
                                  struct drarun_local **ret_local, struct drarun_error *err);
/* Returns a descriptor for poll and similar calls, readable while drarun_local_dispatch has work to
 * do. */
DRARUN_API int drarun_local_fd(const struct drarun_local *local);
/* Calls the callbacks for new output, without blocking. Returns 1 if the job has ended. */
DRARUN_API int drarun_local_dispatch(struct drarun_local *local, struct drarun_error *err);
/* Waits until the job ends, with *ret_status as from drarun_job_follow; ret_status may be NULL.
 * Returns at once if the job has already ended. An error says why no rank's status is available:
 * its kind corresponds to the exit status of `drarun`, and is DRARUN_ERR_INTERRUPTED after
 * drarun_local_signal. */
DRARUN_API int drarun_local_wait(struct drarun_local *local, int *ret_status,
                                 struct drarun_error *err);
/* Sends a signal to the job. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to the ranks and end the job;
 * SIGUSR1, SIGUSR2 and SIGWINCH go to the ranks. May be called from any thread or signal handler
 * until the job is freed. */
DRARUN_API void drarun_local_signal(struct drarun_local *local, int signo);
/* Ends the job if it still runs, which may take a few seconds. */
DRARUN_API void drarun_local_free(struct drarun_local *local);

/* drarun_local_start, then drarun_local_wait. */
DRARUN_API int drarun_local_run(const char *const *command,
                                const struct drarun_local_options *options, int *ret_status,
                                struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
