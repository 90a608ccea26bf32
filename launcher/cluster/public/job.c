/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "launcher/files/api_options.h"
#include "launcher/programs/agent_image.h"
#include "launcher/api/text.h"
#include "jobs/status/drajob.h"
#include "launcher/cluster/submit/cancel.h"
#include "launcher/cluster/client/dra_job.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/public/public.h"
#include "launcher/cluster/submit/submit.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

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

static int submit(struct drarun_cluster *cluster, const struct job_spec *spec,
                  const struct drarun_submit_options *options, struct drarun_job **ret_job,
                  struct drarun_error *err)
{
    const char *namespace =
        spec->namespace && !cluster->namespace_said ? spec->namespace : cluster->cluster.namespace;
    struct public_call call;
    char *uid = NULL;
    int rc = spec_need_own(spec, err);
    if (rc == 0)
        rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    if (options->replace)
        rc = cancel_ended(&cluster->cluster, spec->name, namespace, err);
    if (rc >= 0)
        rc = submit_job(&cluster->cluster, spec, namespace, agent_image(options->image), &uid, err);
    public_end(&call);
    return rc == 0 ? job_new_take(cluster, spec->name, namespace, uid, ret_job, err) : rc;
}

int drarun_job_submit(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                      const struct drarun_submit_options *options, struct drarun_job **ret_job,
                      struct drarun_error *err)
{
    struct drarun_submit_options o = {0};
    struct job_spec own = {0};
    int rc = api_options(options, &o, sizeof o, err);
    if (rc == 0)
        rc = spec_need_known_profile(&spec->job, &spec->profiles, err);
    if (rc == 0)
        rc = spec_again(&spec->job, NULL, o.name, o.workers, &own, err);
    if (rc < 0)
        return rc;
    rc = submit(cluster, &own, &o, ret_job, err);
    job_spec_done(&own);
    return rc;
}

/* One of the two: a DraJob of which nothing is made yet has no ConfigMap. */
static int read_job(struct drarun_cluster *cluster, const char *name, const char *namespace,
                    json_t **ret_map, json_t **ret_object, struct drarun_error *err)
{
    struct drarun_error none = {0};
    int rc = job_map_get(&cluster->cluster, name, namespace, ret_map, &none);
    if (rc == -ENOENT)
        return dra_job_get(&cluster->cluster, name, namespace, ret_object, err);
    if (rc < 0 && err)
        *err = none;
    return rc;
}

int drarun_job_open(struct drarun_cluster *cluster, const char *name, struct drarun_job **ret_job,
                    struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *object = NULL;
    struct public_call call;
    const char *namespace = cluster->cluster.namespace;
    int rc = job_name_check(name, err);
    if (rc == 0)
        rc = public_begin(&call, cluster, err);
    if (rc < 0)
        return rc;
    rc = read_job(cluster, name, namespace, &map, &object, err);
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

/* Of a DraJob of which nothing is made yet: what its own status says. */
static char *status_text(const json_t *map, const json_t *object)
{
    CLEANUP(json_decrefp) json_t *doc = object ? drajob_doc(object) : NULL;
    if (object)
        return doc ? json_dumps(doc, JSON_COMPACT) : NULL;
    return job_map_status(map, &doc, NULL) == 0 ? json_dumps(doc, JSON_COMPACT) : strdup("{}");
}

int drarun_job_status(struct drarun_job *job, char **ret_json, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *object = NULL;
    struct public_call call;
    int rc = public_begin(&call, job->cluster, err);
    if (rc < 0)
        return rc;
    rc = read_job(job->cluster, job->name, job->namespace, &map, &object, err);
    char *json = rc == 0 ? status_text(map, object) : NULL;
    public_end(&call);
    if (rc < 0)
        return rc;
    if (!json)
        return error_set(err, ENOMEM, "out of memory");
    *ret_json = json;
    return 0;
}

static int document_of(const json_t *map, const json_t *object, char **ret_json,
                       struct drarun_error *err)
{
    struct job_spec spec;
    int rc = object ? drajob_spec(object, &spec, err) : job_map_spec(map, &spec, err);
    if (rc < 0)
        return rc;
    char *json = text_of_json_take(json_incref(spec.document));
    job_spec_done(&spec);
    if (!json)
        return error_set(err, ENOMEM, "out of memory");
    *ret_json = json;
    return 0;
}

int drarun_job_document(struct drarun_job *job, char **ret_json, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *object = NULL;
    struct public_call call;
    int rc = public_begin(&call, job->cluster, err);
    if (rc < 0)
        return rc;
    rc = read_job(job->cluster, job->name, job->namespace, &map, &object, err);
    if (rc == 0)
        rc = document_of(map, object, ret_json, err);
    public_end(&call);
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
