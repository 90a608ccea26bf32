/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on a cluster: submit, follow, wait, cancel. Calls block until they have the result, except
 * for the ..._start calls. Each request has a deadline. Only one thread at a time may use a cluster
 * and its jobs, in the process that opened the cluster: after fork, a child must open its own. */
#ifndef DRARUN_JOB_H
#define DRARUN_JOB_H

#include "drarun/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct event_base; /* libevent's */
struct drarun_cluster;
struct drarun_job;

/* ---- the cluster ---- */

enum drarun_loglevel {
    DRARUN_LOG_ERROR = 0,
    DRARUN_LOG_NOTE,
    DRARUN_LOG_VERBOSE,
    DRARUN_LOG_DEBUG
};

struct drarun_cluster_options {
    size_t size;            /* of this struct */
    const char *kubeconfig; /* file. NULL: $KUBECONFIG, ~/.kube/config, the pod's service account */
    const char *context;    /* context of the kubeconfig. NULL: the current one */
    const char *namespace_; /* namespace of jobs. NULL: the context's */
    /* Receives, during a call, each log line that `drarun` would write to stderr, without the
     * newline. NULL: no log. */
    void (*log)(void *arg, enum drarun_loglevel level, const char *text);
    void *arg;
    enum drarun_loglevel level; /* highest level that log receives; 0 is errors */
    /* The caller's libevent loop. Blocking calls run it until they have their result, so the
     * caller's own events continue. The ..._start operations progress whenever it runs, without
     * drarun_cluster_dispatch. It must outlive the cluster. NULL: see drarun_cluster_fd. */
    struct event_base *base;
};
DRARUN_DEFINE_INIT(drarun_cluster_options)

/* Reads the kubeconfig, without connecting to the cluster yet. Kind DRARUN_ERR_USAGE: there is no
 * kubeconfig; DRARUN_ERR_SPEC: the file cannot be read or has no such context. */
DRARUN_API int drarun_cluster_open(const struct drarun_cluster_options *options,
                                   struct drarun_cluster **ret_cluster, struct drarun_error *err);
/* Closes the cluster. Free its jobs and followings before. */
DRARUN_API void drarun_cluster_close(struct drarun_cluster *cluster);
DRARUN_API const char *drarun_cluster_namespace(const struct drarun_cluster *cluster);

/* Interrupts the calls and followings that follow or wait for jobs of the cluster; if there are
 * none, the next one. They fail with -ECANCELED, kind DRARUN_ERR_INTERRUPTED; the jobs keep
 * running. May be called from any thread or signal handler while the cluster is open. */
DRARUN_API void drarun_cluster_interrupt(struct drarun_cluster *cluster);

/* Like drarun_plan_build, with the cluster's current slices, nodes, classes and claims, and with
 * the quotas and limit ranges of the spec's namespace, else of the cluster's. Files in the options
 * are ignored. */
DRARUN_API int drarun_cluster_plan(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                                   const struct drarun_plan_options *options,
                                   struct drarun_plan **ret_plan, struct drarun_error *err);

/* ---- a job ---- */

struct drarun_submit_options {
    size_t size;       /* of this struct */
    const char *name;  /* overrides the spec's */
    const char *image; /* image of agent and launcher. NULL: $DRARUN_IMAGE, else this version's */
    unsigned workers;  /* overrides the spec's; 0: the spec's */
    unsigned char replace; /* 1: first delete a finished job of the same name */
};
DRARUN_DEFINE_INIT(drarun_submit_options)

/* Creates the job's objects and lets the cluster run the job. The namespace is that of the
 * cluster's options, else the spec's, else the context's. -EEXIST, kind DRARUN_ERR_CLUSTER: a job
 * of that name exists. -EINVAL, kind DRARUN_ERR_SPEC: spec.managedBy names another controller, or
 * nccl.profile names a profile of the site's file. On failure, nothing of the job remains. */
DRARUN_API int drarun_job_submit(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                                 const struct drarun_submit_options *options,
                                 struct drarun_job **ret_job, struct drarun_error *err);
/* Opens a job that was submitted before. -ENOENT, kind DRARUN_ERR_USAGE: there is no job of that
 * name. */
DRARUN_API int drarun_job_open(struct drarun_cluster *cluster, const char *name,
                               struct drarun_job **ret_job, struct drarun_error *err);
/* The job itself keeps running. */
DRARUN_API void drarun_job_free(struct drarun_job *job);
DRARUN_API const char *drarun_job_name(const struct drarun_job *job);
DRARUN_API const char *drarun_job_namespace(const struct drarun_job *job);

/* Returns the status document as JSON (share/drarun/schema/drajob-status-v1alpha1.json), or "{}" if
 * there is none yet. */
DRARUN_API int drarun_job_status(struct drarun_job *job, char **ret_json, struct drarun_error *err);
/* Returns the job's document as JSON, as drarun_spec_json does. */
DRARUN_API int drarun_job_document(struct drarun_job *job, char **ret_json,
                                   struct drarun_error *err);

struct drarun_follow_options {
    size_t size; /* of this struct */
    /* Receives what a rank wrote: a line with its newline, or a piece of a long line, which may end
     * within a character. data is borrowed for the call. A non-zero return value stops the output
     * and ends the call as if interrupted. NULL: do not read the output. */
    int (*output)(void *arg, unsigned rank, int is_stderr, const char *data, size_t length);
    /* Receives once a second, until the ranks run, a text that says what the job waits for. NULL:
     * no progress reports. */
    void (*progress)(void *arg, const char *text);
    void *arg;
    const unsigned *rank; /* output of this rank only. NULL: of all ranks */
    long long timeout_ms; /* 0: no timeout */
    unsigned char once;   /* 1: read the output that exists now, and wait for nothing */
    /* 1: cancel the job if the call is interrupted or times out. If cancelling fails, the call
     * returns that error, and the job keeps running. */
    unsigned char cancel;
};
DRARUN_DEFINE_INIT(drarun_follow_options)

/* Follows the job until it ends, and sets *ret_status to its exit status: that of the first failing
 * rank, 128 + the signal, or as from drarun_exit_status. ret_status may be NULL. If an applied
 * DraJob has not been started yet or is suspended, the call waits. If another controller manages it
 * (spec.managedBy), the call waits, without output, until that controller reports the end.
 * -ETIMEDOUT, kind DRARUN_ERR_TIMEOUT: the timeout has expired. -ENOENT: the job was deleted or,
 * with kind DRARUN_ERR_USAGE, does not exist. Kind DRARUN_ERR_SPEC: the spec was rejected; it may
 * be corrected and applied again. -EIO, kind DRARUN_ERR_INFRASTRUCTURE: the job has ended with
 * status 0, but its output could not be read to the end.
 *
 * Callbacks run within the call. They must not use the cluster except for
 * drarun_cluster_interrupt. */
DRARUN_API int drarun_job_follow(struct drarun_job *job,
                                 const struct drarun_follow_options *options, int *ret_status,
                                 struct drarun_error *err);
/* The same without output; timeout_ms 0: no timeout. */
DRARUN_API int drarun_job_wait(struct drarun_job *job, long long timeout_ms, int *ret_status,
                               struct drarun_error *err);
/* Cancels a job: its ranks get SIGINT, 5 s later SIGTERM, and the job ends with 130. A job whose
 * launcher does not run yet is deleted, and so are the remaining objects of a job that has ended.
 * The call does not wait for the end. -ENOENT: there is no such job. */
DRARUN_API int drarun_job_cancel(struct drarun_job *job, struct drarun_error *err);

/* drarun_job_submit, then drarun_job_follow. */
DRARUN_API int drarun_run(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                          const struct drarun_submit_options *submit,
                          const struct drarun_follow_options *follow, int *ret_status,
                          struct drarun_error *err);

/* ---- asynchronous calls ---- */

/* A job that is followed while the caller does other work. Callbacks come from the caller's event
 * loop. That is the libevent loop of drarun_cluster_options.base, or any other loop that waits
 * until drarun_cluster_fd is readable and then calls drarun_cluster_dispatch. Any number of
 * followings may run at the same time. They also progress during blocking calls on the same
 * cluster. */
struct drarun_following;

/* Called once, at the end: status is valid if err->code is 0; otherwise err is an error of
 * drarun_job_follow. May free the following. err is borrowed for the call. */
typedef void (*drarun_ended_fn)(void *arg, int status, const struct drarun_error *err);

/* Like drarun_job_follow and drarun_job_wait, but return at once. If they return -errno, nothing
 * was started and ended is not called. Callbacks come from the caller's loop. They must not use the
 * cluster except for drarun_cluster_interrupt and drarun_following_free. The option cancel is not
 * supported, since cancelling blocks. The job may be freed before its following. */
DRARUN_API int drarun_job_follow_start(struct drarun_job *job,
                                       const struct drarun_follow_options *options,
                                       drarun_ended_fn ended, void *arg,
                                       struct drarun_following **ret_following,
                                       struct drarun_error *err);
DRARUN_API int drarun_job_wait_start(struct drarun_job *job, long long timeout_ms,
                                     drarun_ended_fn ended, void *arg,
                                     struct drarun_following **ret_following,
                                     struct drarun_error *err);
/* drarun_job_submit, which blocks, then drarun_job_follow_start. If the latter fails, the job is
 * cancelled. */
DRARUN_API int drarun_run_start(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                                const struct drarun_submit_options *submit,
                                const struct drarun_follow_options *follow, drarun_ended_fn ended,
                                void *arg, struct drarun_following **ret_following,
                                struct drarun_error *err);
/* Stops following; no callback is called afterwards. The job keeps running. May be called at any
 * time, also from a callback. */
DRARUN_API void drarun_following_free(struct drarun_following *following);

/* Returns a descriptor for poll and similar calls, readable while drarun_cluster_dispatch has work
 * to do. The cluster owns it: do not close or read it. -ENOTSUP: libevent does not use epoll, or
 * there is no /proc. */
DRARUN_API int drarun_cluster_fd(struct drarun_cluster *cluster, struct drarun_error *err);
/* Does that work without blocking. Callbacks are called from here. */
DRARUN_API int drarun_cluster_dispatch(struct drarun_cluster *cluster, struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
