/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on a cluster: submit, follow, wait, cancel. The calls block until their answer is there, but
 * for those that start something; each request has a deadline. A cluster and its jobs are used by
 * one thread at a time, of the process that opened it: after fork, a child opens its own. */
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
    const char *context;    /* of it. NULL: the current one */
    const char *namespace_; /* of jobs. NULL: the context's */
    /* Lines for people that `drarun` would write to stderr, without a newline, from within a call.
     * NULL: they go nowhere. */
    void (*log)(void *arg, enum drarun_loglevel level, const char *text);
    void *arg;
    enum drarun_loglevel level; /* the most that log gets; 0 is errors */
    /* The caller's libevent loop, which each blocking call then runs until its answer is there: the
     * caller's own events go on meanwhile. What was started goes on whenever it runs, without
     * drarun_cluster_dispatch. It must outlive the cluster. NULL: see drarun_cluster_fd. */
    struct event_base *base;
};
DRARUN_DEFINE_INIT(drarun_cluster_options)

/* Reads the kubeconfig; no connection is made yet. Kind DRARUN_ERR_USAGE: there is
 * none; DRARUN_ERR_SPEC: its file cannot be read, or has no such context. */
DRARUN_API int drarun_cluster_open(const struct drarun_cluster_options *options,
                                   struct drarun_cluster **ret_cluster, struct drarun_error *err);
/* After its jobs and followings. */
DRARUN_API void drarun_cluster_close(struct drarun_cluster *cluster);
DRARUN_API const char *drarun_cluster_namespace(const struct drarun_cluster *cluster);

/* Ends what follows jobs of the cluster, calls and followings, or the next one that would, with
 * -ECANCELED, kind DRARUN_ERR_INTERRUPTED; the jobs go on. From any thread or signal handler, while
 * the cluster is open. */
DRARUN_API void drarun_cluster_interrupt(struct drarun_cluster *cluster);

/* drarun_plan_build with the cluster's slices, nodes, classes and claims as they are now; what the
 * options say of files is not heeded. */
DRARUN_API int drarun_cluster_plan(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                                   const struct drarun_plan_options *options,
                                   struct drarun_plan **ret_plan, struct drarun_error *err);

/* ---- a job ---- */

struct drarun_submit_options {
    size_t size;           /* of this struct */
    const char *name;      /* in place of the spec's */
    const char *image;     /* of agent and launcher. NULL: $DRARUN_IMAGE, else this version's */
    unsigned workers;      /* in place of the spec's; 0: the spec's */
    unsigned char replace; /* 1: a job of that name that has ended is deleted first */
};
DRARUN_DEFINE_INIT(drarun_submit_options)

/* Makes the job's objects and leaves it to the cluster, in the namespace of the cluster's options,
 * else the spec's, else the context's. -EEXIST, kind DRARUN_ERR_CLUSTER: there is a job of that
 * name. -EINVAL, kind DRARUN_ERR_SPEC: spec.managedBy names another controller. When it fails,
 * nothing of the job is left. */
DRARUN_API int drarun_job_submit(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                                 const struct drarun_submit_options *options,
                                 struct drarun_job **ret_job, struct drarun_error *err);
/* A job that somebody has submitted. -ENOENT, kind DRARUN_ERR_USAGE: there is none of that name. */
DRARUN_API int drarun_job_open(struct drarun_cluster *cluster, const char *name,
                               struct drarun_job **ret_job, struct drarun_error *err);
/* The job itself goes on. */
DRARUN_API void drarun_job_free(struct drarun_job *job);
DRARUN_API const char *drarun_job_name(const struct drarun_job *job);
DRARUN_API const char *drarun_job_namespace(const struct drarun_job *job);

/* The status document as JSON (share/drarun/schema/drajob-status-v1alpha1.json); "{}" before there
 * is one. */
DRARUN_API int drarun_job_status(struct drarun_job *job, char **ret_json, struct drarun_error *err);
/* The job's document as JSON, as drarun_spec_json has it. */
DRARUN_API int drarun_job_document(struct drarun_job *job, char **ret_json,
                                   struct drarun_error *err);

struct drarun_follow_options {
    size_t size; /* of this struct */
    /* What a rank wrote, a line with its newline or a piece of a long one; borrowed for the call.
     * Other than 0: no more, and the call ends as if interrupted. NULL: the output is not read. */
    int (*output)(void *arg, unsigned rank, int is_stderr, const char *data, size_t length);
    /* What is awaited before the ranks run, in words, once a second. NULL: it is not told. */
    void (*progress)(void *arg, const char *text);
    void *arg;
    const unsigned *rank; /* output of this one alone. NULL: of all */
    long long timeout_ms; /* 0: none */
    unsigned char once;   /* 1: the output that there is, without waiting for more or the end */
    /* 1: a call that is interrupted, or out of time, cancels the job. Where that fails, the error
     * is the one of cancelling, and the job goes on. */
    unsigned char cancel;
};
DRARUN_DEFINE_INIT(drarun_follow_options)

/* Until the job ends, with *ret_status its exit status: that of the first failing rank, 128 + the
 * signal, or as drarun_exit_status; ret_status may be NULL. -ETIMEDOUT, kind DRARUN_ERR_TIMEOUT;
 * -ENOENT: it was deleted, or, kind DRARUN_ERR_USAGE, there is no such job. A DraJob that was
 * applied is awaited until something is made of it, and again when it is suspended; one that
 * another controller manages (spec.managedBy), until that one reports its end, without output. Kind
 * DRARUN_ERR_SPEC: its spec was refused; it may be corrected and applied again. -EIO, kind
 * DRARUN_ERR_INFRASTRUCTURE: it has ended with status 0, and its output could not be read to its
 * end.
 *
 * Callbacks run within the call; they must not use the cluster but for drarun_cluster_interrupt. */
DRARUN_API int drarun_job_follow(struct drarun_job *job,
                                 const struct drarun_follow_options *options, int *ret_status,
                                 struct drarun_error *err);
/* The same without output; timeout_ms 0: none. */
DRARUN_API int drarun_job_wait(struct drarun_job *job, long long timeout_ms, int *ret_status,
                               struct drarun_error *err);
/* Ranks get SIGTERM and the job ends with 130; what is kept of an ended job is deleted. The call
 * does not wait for the end. -ENOENT: there is no such job. */
DRARUN_API int drarun_job_cancel(struct drarun_job *job, struct drarun_error *err);

/* drarun_job_submit, drarun_job_follow. */
DRARUN_API int drarun_run(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                          const struct drarun_submit_options *submit,
                          const struct drarun_follow_options *follow, int *ret_status,
                          struct drarun_error *err);

/* ---- beside other work ---- */

/* A job that is followed while the caller does something else: its callbacks come from the
 * caller's loop. With drarun_cluster_options.base that is libevent's; another one, of any make,
 * waits until drarun_cluster_fd is readable and calls drarun_cluster_dispatch. Any number of them
 * go on at the same time. They go on within blocking calls on the same cluster, too. */
struct drarun_following;

/* It has ended: status, and err with code 0, or why not, as of drarun_job_follow. Called once; it
 * may free the following. Borrowed for the call. */
typedef void (*drarun_ended_fn)(void *arg, int status, const struct drarun_error *err);

/* drarun_job_follow and drarun_job_wait, which return at once; -errno: nothing was started, and
 * ended will not be called. Callbacks come from the caller's loop, and must not use the cluster but
 * for drarun_cluster_interrupt and drarun_following_free. The option cancel cannot be had, since
 * cancelling blocks. The job may be freed before its following. */
DRARUN_API int drarun_job_follow_start(struct drarun_job *job,
                                       const struct drarun_follow_options *options,
                                       drarun_ended_fn ended, void *arg,
                                       struct drarun_following **ret_following,
                                       struct drarun_error *err);
DRARUN_API int drarun_job_wait_start(struct drarun_job *job, long long timeout_ms,
                                     drarun_ended_fn ended, void *arg,
                                     struct drarun_following **ret_following,
                                     struct drarun_error *err);
/* drarun_job_submit, which blocks, and drarun_job_follow_start. Where that fails, the job is
 * cancelled. */
DRARUN_API int drarun_run_start(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                                const struct drarun_submit_options *submit,
                                const struct drarun_follow_options *follow, drarun_ended_fn ended,
                                void *arg, struct drarun_following **ret_following,
                                struct drarun_error *err);
/* No callback afterwards; the job goes on. At any time, also from a callback. */
DRARUN_API void drarun_following_free(struct drarun_following *following);

/* For poll and its like: readable while drarun_cluster_dispatch has something to do. It is the
 * cluster's: not to be closed or read. -ENOTSUP: libevent waits with something else than epoll, or
 * there is no /proc. */
DRARUN_API int drarun_cluster_fd(struct drarun_cluster *cluster, struct drarun_error *err);
/* Does it, without waiting: callbacks come from here. */
DRARUN_API int drarun_cluster_dispatch(struct drarun_cluster *cluster, struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
