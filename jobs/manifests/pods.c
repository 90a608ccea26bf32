/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/pods.h"

#include <errno.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_merge.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

int pods_worker(const struct job_spec *spec, const struct render_options *options, uint32_t worker,
                json_t **ret_pod, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *template = NULL;
    int rc = pod_merge(spec, options, worker, &template, err);
    if (rc < 0)
        return rc;
    CLEANUP(json_decrefp)
    json_t *pod =
        object_new(spec, options, "v1", "Pod", json_sprintf("%s-w-%u", spec->name, worker), true);
    json_t *metadata = json_object_get(pod, "metadata");
    /* the template's labels and annotations hold the job's, so that only the names are added */
    if (!pod || json_object_update(metadata, json_object_get(template, "metadata")) < 0 ||
        json_object_set(pod, "spec", json_object_get(template, "spec")) < 0)
        return error_set(err, ENOMEM, "pod: out of memory");
    *ret_pod = TAKE_PTR(pod);
    return 0;
}

static json_t *job_fields(const struct job_spec *spec, const struct render_options *options,
                          json_t *template_take)
{
    /* one worker's end is the attempt's end: another try is the launcher's to make */
    json_t *job =
        json_pack("{s:i, s:i, s:s, s:i, s:s, s:i}", "parallelism", (int)spec->workers,
                  "completions", (int)spec->workers, "completionMode", "Indexed", "backoffLimit", 0,
                  "podReplacementPolicy", "Failed", "ttlSecondsAfterFinished", PODS_JOB_TTL_S);
    int rc = 0;
    /* Kueue admits a Job by taking this away */
    if (spec->suspend || options->suspended || spec->queue)
        rc = json_object_set_new(job, "suspend", json_true());
    if (json_object_set_new(job, "template", template_take) < 0 || rc < 0) {
        json_decref(job);
        return NULL;
    }
    return job;
}

int pods_indexed_job(const struct job_spec *spec, const struct render_options *options,
                     json_t **ret_job, struct drarun_error *err)
{
    json_t *template = NULL;
    int rc = pod_merge(spec, options, POD_MERGE_INDEXED, &template, err);
    if (rc < 0)
        return rc;
    CLEANUP(json_decrefp)
    json_t *job =
        object_new(spec, options, "batch/v1", "Job", json_sprintf("%s-w", spec->name), true);
    json_t *labels = json_object_get(json_object_get(job, "metadata"), "labels");
    if (json_object_set_new(job, "spec", job_fields(spec, options, template)) < 0 ||
        (spec->queue &&
         json_object_set_new(labels, OBJECT_QUEUE_LABEL, json_string(spec->queue)) < 0))
        return error_set(err, ENOMEM, "worker Job: out of memory");
    *ret_job = TAKE_PTR(job);
    return 0;
}
