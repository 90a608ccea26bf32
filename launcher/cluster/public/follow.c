/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/files/api_options.h"
#include "launcher/cluster/follow/through.h"
#include "launcher/cluster/public/public.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct drarun_following {
    TAILQ_ENTRY(drarun_following) link;
    struct drarun_cluster *cluster;
    struct follow_through *follow;
    struct drarun_follow_options options; /* whose callbacks get the public types */
    volatile sig_atomic_t stop;
    drarun_ended_fn ended;
    void *arg;
};

static int on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    const struct drarun_follow_options *o = &((struct drarun_following *)arg)->options;
    return o->output(o->arg, rank, is_stderr, data, length);
}

static void on_progress(void *arg, const char *text)
{
    const struct drarun_follow_options *o = &((struct drarun_following *)arg)->options;
    o->progress(o->arg, text);
}

static void on_ended(void *arg)
{
    struct drarun_following *following = arg;
    struct drarun_error err = {0};
    int status = 0;
    if (follow_through_result(following->follow, &status, &err) == 0)
        err = (struct drarun_error){0};
    following->ended(following->arg, status, &err);
}

void public_take_interrupt(struct drarun_cluster *cluster)
{
    struct drarun_following *each;
    if (!cluster->interrupted || TAILQ_EMPTY(&cluster->followings))
        return;
    cluster->interrupted = 0;
    TAILQ_FOREACH (each, &cluster->followings, link) {
        each->stop = 1;
        follow_through_look(each->follow);
    }
}

/* Within a call. */
static int begin(const struct drarun_job *job, const struct drarun_follow_options *o,
                 drarun_ended_fn ended, void *arg, struct drarun_following **ret_following,
                 struct drarun_error *err)
{
    struct drarun_following *f = calloc(1, sizeof *f);
    if (!f)
        return error_set(err, ENOMEM, "out of memory");
    *f = (struct drarun_following){
        .cluster = job->cluster, .options = *o, .ended = ended, .arg = arg};
    const struct follow_options options = {
        .job = job->name,
        .namespace = job->namespace,
        .uid = job->uid,
        .output = o->output,
        .once = o->once,
        .rank = o->rank ? (int32_t)*o->rank : -1,
        .timeout_ms = o->timeout_ms,
        .put = o->output ? on_output : NULL,
        .progress = o->progress ? on_progress : NULL,
        .arg = f,
        .stop = &f->stop,
        .patient = true,
    };
    int rc = follow_through_new(&job->cluster->cluster, &options, on_ended, f, &f->follow, err);
    if (rc < 0) {
        free(f);
        return rc;
    }
    TAILQ_INSERT_TAIL(&job->cluster->followings, f, link);
    public_take_interrupt(job->cluster);
    *ret_following = f;
    return 0;
}

static void end(struct drarun_following *following)
{
    TAILQ_REMOVE(&following->cluster->followings, following, link);
    follow_through_free(following->follow);
    free(following);
}

void drarun_following_free(struct drarun_following *following)
{
    struct public_call call;
    /* in a child loop and connections are the parent's too: only memory is lost there */
    if (!following || following->cluster->pid != getpid())
        return;
    /* from a callback of the cluster's, which is in a call already */
    bool within = following->cluster->busy;
    if (!within)
        public_begin(&call, following->cluster, NULL);
    end(following);
    if (!within)
        public_end(&call);
}

/* ---- beside other work ---- */

int drarun_job_follow_start(struct drarun_job *job, const struct drarun_follow_options *options,
                            drarun_ended_fn ended, void *arg,
                            struct drarun_following **ret_following, struct drarun_error *err)
{
    struct drarun_follow_options o;
    struct public_call call;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc < 0)
        return rc;
    if (o.cancel)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "cancel: not possible where the follow runs beside other work: call drarun_job_cancel");
    rc = public_begin(&call, job->cluster, err);
    if (rc < 0)
        return rc;
    rc = begin(job, &o, ended, arg, ret_following, err);
    public_end(&call);
    return rc;
}

int drarun_job_wait_start(struct drarun_job *job, long long timeout_ms, drarun_ended_fn ended,
                          void *arg, struct drarun_following **ret_following,
                          struct drarun_error *err)
{
    struct drarun_follow_options options = drarun_follow_options_init();
    options.timeout_ms = timeout_ms;
    return drarun_job_follow_start(job, &options, ended, arg, ret_following, err);
}

/* ---- the same, and the loop ---- */

struct waited {
    bool over;
    int status;
    struct drarun_error err;
};

static void on_over(void *arg, int status, const struct drarun_error *err)
{
    *(struct waited *)arg = (struct waited){true, status, *err};
}

static int follow(struct drarun_job *job, const struct drarun_follow_options *o,
                  struct waited *waited, struct drarun_error *err)
{
    struct drarun_following *following = NULL;
    struct public_call call;
    int rc = public_begin(&call, job->cluster, err);
    if (rc < 0)
        return rc;
    rc = begin(job, o, on_over, waited, &following, err);
    while (rc == 0 && !waited->over)
        if (cluster_loop(&job->cluster->cluster) != 0 && !waited->over)
            rc = error_set(err, EINVAL, "the event loop ended before the job");
    if (following)
        end(following);
    public_end(&call);
    return rc;
}

/* That a job goes on which was to end is what the caller must know first. */
static void cancel_left(struct drarun_job *job, struct drarun_error *why)
{
    struct drarun_error failed = {0};
    int rc = drarun_job_cancel(job, &failed);
    if (rc == 0 || rc == -ENOENT) /* it has gone by itself */
        return;
    *why = failed;
    error_prefix(why, "job %s could not be cancelled and goes on", job->name);
}

int drarun_job_follow(struct drarun_job *job, const struct drarun_follow_options *options,
                      int *ret_status, struct drarun_error *err)
{
    struct drarun_follow_options o;
    struct waited waited = {0};
    int rc = api_options(options, &o, sizeof o, err);
    if (rc == 0)
        rc = follow(job, &o, &waited, err);
    if (rc < 0)
        return rc;
    enum drarun_errkind kind = waited.err.kind;
    if (o.cancel && (kind == DRARUN_ERR_INTERRUPTED || kind == DRARUN_ERR_TIMEOUT))
        cancel_left(job, &waited.err);
    if (waited.err.code) {
        if (err)
            *err = waited.err;
        return -waited.err.code;
    }
    if (ret_status)
        *ret_status = waited.status;
    return 0;
}

int drarun_job_wait(struct drarun_job *job, long long timeout_ms, int *ret_status,
                    struct drarun_error *err)
{
    struct drarun_follow_options options = drarun_follow_options_init();
    options.timeout_ms = timeout_ms;
    return drarun_job_follow(job, &options, ret_status, err);
}
