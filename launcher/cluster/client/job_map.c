/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/job_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/status/status_doc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

#define AWAIT_MS 60000
#define AGAIN_MS 100

#define SUFFIX "-status"

void job_map_name(const char *job, char name[JOB_MAP_NAME_SIZE])
{
    snprintf(name, JOB_MAP_NAME_SIZE, "%s" SUFFIX, job);
}

bool job_map_job(const json_t *map, char ret_job[JOB_MAP_NAME_SIZE])
{
    char job[JOB_MAP_NAME_SIZE];
    const char *name = kube_name(map);
    size_t length = strlen(name), suffix = strlen(SUFFIX);
    if (length <= suffix || length >= sizeof job || strcmp(name + length - suffix, SUFFIX) != 0)
        return false;
    snprintf(job, sizeof job, "%.*s", (int)(length - suffix), name);
    if (!k8s_is_label(job))
        return false;
    snprintf(ret_job, JOB_MAP_NAME_SIZE, "%s", job);
    return true;
}

int job_name_check(const char *job, struct drarun_error *err)
{
    if (k8s_is_label(job))
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "\"%s\" is not the name of a job: expected a DNS label (a-z, 0-9 and inner "
                      "-, at most %d); drarun list shows the jobs",
                      job, SPEC_NAME_MAX);
}

int job_map_none(const char *job, const char *namespace, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                      "there is no job %s in namespace %s; drarun list shows the jobs", job,
                      namespace);
}

int job_map_get(struct cluster *cluster, const char *job, const char *namespace, json_t **ret_map,
                struct drarun_error *err)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(job, name);
    const struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = namespace, .name = name};
    struct drarun_error missing = {0};
    int rc = cluster_get(cluster, &target, ret_map, &missing);
    if (rc != -ENOENT)
        return rc < 0 ? error_kind(err, missing.kind, missing.code, "%s", missing.text) : 0;
    return job_map_none(job, namespace, err);
}

int job_map_await(struct cluster *cluster, const char *job, const char *namespace,
                  const char *owner_uid, json_t **ret_map, struct drarun_error *err)
{
    int64_t end = clock_ms() + AWAIT_MS;
    for (;;) {
        CLEANUP(json_decrefp) json_t *map = NULL;
        struct drarun_error missing = {0};
        int rc = job_map_get(cluster, job, namespace, &map, &missing);
        if (rc < 0 && rc != -ENOENT)
            return error_kind(err, missing.kind, missing.code, "%s", missing.text);
        if (rc == 0 && kube_is_owned_by(map, owner_uid)) {
            *ret_map = TAKE_PTR(map);
            return 0;
        }
        if (clock_ms() >= end)
            return error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                              "ConfigMap %s-status of this job did not appear within %d s: its "
                              "client died, or an earlier job's ConfigMap is not deleted",
                              job, AWAIT_MS / 1000);
        cluster_turn(cluster, AGAIN_MS);
    }
}

static const char *data(const json_t *map, const char *key)
{
    return json_string_value(json_object_get(json_object_get(map, "data"), key));
}

int job_map_spec(const json_t *map, struct job_spec *ret_spec, struct drarun_error *err)
{
    const char *text = data(map, "job.json");
    if (!text)
        return error_kind(err, DRARUN_ERR_SPEC, ENOENT, "ConfigMap %s has no job.json",
                          kube_name(map));
    return spec_parse("job.json", text, strlen(text), ret_spec, err);
}

/* By the uid of the job's owner; the document of another release may have none. */
static bool is_about(const json_t *map, const json_t *doc)
{
    const char *uid = json_string_value(json_object_get(doc, "uid"));
    return !uid || strcmp(uid, kube_uid(map)) == 0 || kube_is_owned_by(map, uid);
}

int job_map_status(const json_t *map, json_t **ret_doc, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *doc = NULL;
    const char *text = data(map, STATUS_DOC_KEY);
    int rc = text ? status_doc_parse(text, strlen(text), &doc, err) : -ENOENT;
    if (rc < 0 && text)
        return rc;
    if (rc < 0 || !is_about(map, doc))
        return error_kind(err, DRARUN_ERR_CLUSTER, ENOENT, "ConfigMap %s has no status of its job",
                          kube_name(map));
    *ret_doc = TAKE_PTR(doc);
    return 0;
}
