/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/cancel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/k8s_name.h"
#include "jobs/status_doc.h"
#include "launcher/cluster/create.h"
#include "launcher/cluster/dra_job.h"
#include "launcher/cluster/job_clock.h"
#include "launcher/cluster/job_map.h"
#include "launcher/cluster/lease.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* 1: a pod of the launcher Job runs. */
static int launcher_runs(struct cluster *cluster, const char *name, const char *namespace,
                         struct drarun_error *err)
{
    char selector[96];
    size_t i;
    json_t *pod;
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = namespace};
    const struct kube_select select = {.labels = selector};
    CLEANUP(json_decrefp) json_t *list = NULL;
    snprintf(selector, sizeof selector, "batch.kubernetes.io/job-name=%s", name);
    int rc = cluster_list(cluster, &target, &select, &list, err);
    if (rc < 0)
        return rc;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        const json_t *status = json_object_get(pod, "status");
        const char *phase = json_string_value(json_object_get(status, "phase"));
        if (phase && strcmp(phase, "Running") == 0)
            return 1;
    }
    return 0;
}

static void say_end(const char *name, const json_t *doc)
{
    struct buf how = BUF_INIT;
    status_doc_end(doc, lead_now(), &how);
    log_note("job %s had ended before: %s; what was kept of it is deleted", name,
             how.data ? how.data : "?");
    buf_done(&how);
}

/* 1: the job has ended, and is gone with what its owner had. */
static int clear_ended(struct cluster *cluster, const char *name, const char *namespace,
                       struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *doc = NULL;
    const char *text = NULL;
    if (job_map_get(cluster, name, namespace, &map, NULL) == 0)
        text = job_map_status(map);
    if (!text || status_doc_parse(text, strlen(text), &doc, NULL) < 0 || status_doc_exit(doc) < 0)
        return 0;
    bool here = !json_object_get(json_object_get(map, "metadata"), "ownerReferences");
    int rc = dra_job_delete(cluster, name, namespace, err);
    if (rc >= 0)
        rc = delete_job(cluster, name, namespace, here, here ? kube_uid(map) : NULL, err);
    if (rc < 0)
        return rc;
    say_end(name, doc);
    return 1;
}

int cancel_job(struct cluster *cluster, const char *name, const char *namespace,
               struct drarun_error *err)
{
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = namespace, .name = name};
    char status[K8S_LABEL_MAX + 8];
    snprintf(status, sizeof status, "%s-status", name);
    const struct kube_target map = {
        .resource = &kube_config_maps, .namespace_ = namespace, .name = status};
    CLEANUP(json_decrefp)
    json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", CANCEL_ANNOTATION, "now");
    if (!patch)
        return error_set(err, ENOMEM, "out of memory");
    int rc = clear_ended(cluster, name, namespace, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = cluster_merge_patch(cluster, &target, patch, err);
    if (rc == -ENOENT) {
        *err = (struct drarun_error){0};
        rc = cluster_merge_patch(cluster, &map, patch, err);
        if (rc == -ENOENT) {
            *err = (struct drarun_error){0};
            rc = dra_job_delete(cluster, name, namespace, err); /* nothing is made of it yet */
            if (rc != 0)
                return rc < 0 ? rc : 0;
            return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "there is no job %s in namespace %s",
                              name, namespace);
        }
        bool alone = rc == 0 && !lease_is_held(cluster, name, namespace);
        return alone ? delete_job(cluster, name, namespace, true, NULL, err) : rc;
    }
    if (rc == 0)
        rc = launcher_runs(cluster, name, namespace, err);
    return rc == 0 ? delete_job(cluster, name, namespace, false, NULL, err) : rc < 0 ? rc : 0;
}
