/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "launcher/api/options.h"
#include "launcher/cluster/cancel.h"
#include "launcher/cluster/follow.h"
#include "launcher/cluster/job_map.h"
#include "launcher/cluster/public.h"
#include "launcher/cluster/submit.h"
#include "launcher/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

struct drarun_job {
    struct drarun_cluster *cluster;
    char *name, *namespace;
    char *uid; /* of its launcher Job; NULL: whichever job has the name */
};

/* Takes uid. */
static int job_new_take(struct drarun_cluster *cluster, const char *name, const char *namespace,
                        char *uid, struct drarun_job **ret_job, struct drarun_error *err)
{
    struct drarun_job *job = calloc(1, sizeof *job);
    if (!job) {
        free(uid);
        return error_set(err, ENOMEM, "out of memory");
    }
    *job = (struct drarun_job){cluster, strdup(name), strdup(namespace), uid};
    if (job->name && job->namespace) {
        *ret_job = job;
        return 0;
    }
    drarun_job_free(job);
    return error_set(err, ENOMEM, "out of memory");
}

static int submit(struct drarun_cluster *cluster, const struct job_spec *spec, const char *image,
                  struct drarun_job **ret_job, struct drarun_error *err)
{
    const char *namespace =
        spec->namespace && !cluster->namespace_said ? spec->namespace : cluster->cluster.namespace;
    struct public_call call;
    char *uid = NULL;
    int rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = submit_job(&cluster->cluster, spec, namespace, image, &uid, err);
    public_end(&call);
    return rc == 0 ? job_new_take(cluster, spec->name, namespace, uid, ret_job, err) : rc;
}

int drarun_job_submit(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                      const struct drarun_submit_options *options, struct drarun_job **ret_job,
                      struct drarun_error *err)
{
    struct drarun_submit_options o;
    struct job_spec own;
    int rc = api_options(options, &o, sizeof o, err);
    if (rc == 0)
        rc = spec_again(&spec->job, &spec->profiles, o.name, o.workers, &own, err);
    if (rc < 0)
        return rc;
    rc = submit(cluster, &own, o.image, ret_job, err);
    job_spec_done(&own);
    return rc;
}

int drarun_job_open(struct drarun_cluster *cluster, const char *name, struct drarun_job **ret_job,
                    struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL;
    struct public_call call;
    const char *namespace = cluster->cluster.namespace;
    int rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = job_map_get(&cluster->cluster, name, namespace, &map, err);
    public_end(&call);
    return rc == 0 ? job_new_take(cluster, name, namespace, NULL, ret_job, err) : rc;
}

void drarun_job_free(struct drarun_job *job)
{
    if (!job)
        return;
    free(job->name);
    free(job->namespace);
    free(job->uid);
    free(job);
}

const char *drarun_job_name(const struct drarun_job *job)
{
    return job->name;
}

const char *drarun_job_namespace(const struct drarun_job *job)
{
    return job->namespace;
}

int drarun_job_status(struct drarun_job *job, char **ret_json, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL;
    struct public_call call;
    int rc = public_begin(&call, job->cluster, err);
    if (rc < 0)
        return rc;
    rc = job_map_get(&job->cluster->cluster, job->name, job->namespace, &map, err);
    const char *text = rc == 0 ? job_map_status(map) : NULL;
    char *json = strdup(text ? text : "{}");
    public_end(&call);
    if (rc == 0 && !json)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_json = TAKE_PTR(json);
    free(json);
    return rc;
}

int drarun_job_cancel(struct drarun_job *job, struct drarun_error *err)
{
    struct drarun_error own = {0};
    struct public_call call;
    int rc = public_begin(&call, job->cluster, err);
    if (rc < 0)
        return rc;
    rc = cancel_job(&job->cluster->cluster, job->name, job->namespace, &own);
    public_end(&call);
    if (rc < 0 && err)
        *err = own;
    return rc;
}

/* ---- following ---- */

struct forwarded { /* to callbacks of the public types */
    const struct drarun_follow_options *options;
};

static int on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    const struct drarun_follow_options *o = ((struct forwarded *)arg)->options;
    return o->output(o->arg, rank, is_stderr, data, length);
}

static void on_progress(void *arg, const char *text)
{
    const struct drarun_follow_options *o = ((struct forwarded *)arg)->options;
    o->progress(o->arg, text);
}

static int follow(struct drarun_job *job, const struct drarun_follow_options *o, int *ret_status,
                  struct drarun_error *err)
{
    struct drarun_cluster *cluster = job->cluster;
    struct forwarded forwarded = {o};
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
        .arg = &forwarded,
        .stop = &cluster->interrupted,
    };
    struct public_call call;
    int rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = follow_until_end(&cluster->cluster, &options, ret_status, err);
    if (rc < 0)
        cluster->interrupted = 0; /* it was meant for this call */
    public_end(&call);
    return rc;
}

int drarun_job_follow(struct drarun_job *job, const struct drarun_follow_options *options,
                      int *ret_status, struct drarun_error *err)
{
    struct drarun_follow_options o;
    struct drarun_error first = {0};
    int status = 0, rc = api_options(options, &o, sizeof o, err);
    if (rc < 0)
        return rc;
    rc = follow(job, &o, &status, &first);
    bool unended = first.kind == DRARUN_ERR_INTERRUPTED || first.kind == DRARUN_ERR_TIMEOUT;
    if (rc < 0 && unended && o.cancel)
        drarun_job_cancel(job, NULL);
    if (rc < 0 && err)
        *err = first;
    if (rc == 0 && ret_status)
        *ret_status = status;
    return rc;
}

int drarun_job_wait(struct drarun_job *job, long long timeout_ms, int *ret_status,
                    struct drarun_error *err)
{
    struct drarun_follow_options options = drarun_follow_options_init();
    options.timeout_ms = timeout_ms;
    return drarun_job_follow(job, &options, ret_status, err);
}

int drarun_run(struct drarun_cluster *cluster, const struct drarun_spec *spec,
               const struct drarun_submit_options *submit_options,
               const struct drarun_follow_options *follow_options, int *ret_status,
               struct drarun_error *err)
{
    struct drarun_job *job = NULL;
    int rc = drarun_job_submit(cluster, spec, submit_options, &job, err);
    if (rc < 0)
        return rc;
    rc = drarun_job_follow(job, follow_options, ret_status, err);
    drarun_job_free(job);
    return rc;
}
