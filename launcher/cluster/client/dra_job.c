/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/dra_job.h"

#include <errno.h>

#include "jobs/status/drajob.h"
#include "launcher/cluster/client/job_map.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

static struct kube_target target_of(const char *name, const char *namespace)
{
    return (struct kube_target){.resource = &kube_dra_jobs, .namespace_ = namespace, .name = name};
}

int dra_job_get(struct cluster *cluster, const char *name, const char *namespace,
                json_t **ret_object, struct drarun_error *err)
{
    const struct kube_target target = target_of(name, namespace);
    struct drarun_error local = {0};
    int rc = cluster_get(cluster, &target, ret_object, &local);
    if (rc == 0)
        return 0;
    if (rc != -ENOENT && rc != -EACCES)
        return error_kind(err, local.kind, local.code, "%s", local.text);
    return job_map_none(name, namespace, err);
}

json_t *dra_job_list(struct cluster *cluster, const char *namespace, const char *selector)
{
    const struct kube_select select = {.labels = selector};
    const struct kube_target target = target_of(NULL, namespace);
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *list = NULL;
    if (cluster_list(cluster, &target, &select, &list, &err) < 0)
        log_verbose("%s", err.text);
    json_t *items = json_object_get(list, "items");
    return json_is_array(items) ? json_incref(items) : json_array();
}

/* ---- what is made of it ---- */

static const json_t *status_of(const json_t *object)
{
    return json_object_get(object, "status");
}

static const char *status_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(status_of(object), key));
}

void dra_job_add_words(const json_t *object, const char *name, struct buf *out)
{
    const char *manager = drajob_manager(object);
    if (manager)
        buf_printf(out,
                   "DraJob %s is managed by %s, not by drarun's controller, which has its pods and "
                   "logs: %s",
                   name, manager, drajob_words(object));
    else
        buf_printf(out, "DraJob %s has no objects yet: %s", name, drajob_words(object));
}

int dra_job_judge(const json_t *object, const char *name, int *ret_status, struct drarun_error *err)
{
    const char *words = status_text(object, "message");
    if (!object)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOENT, "the DraJob %s was deleted",
                          name);
    if (drajob_has_ended(object)) {
        *ret_status = (int)json_integer_value(json_object_get(status_of(object), "exitStatus"));
        if (*ret_status != 0 && words)
            log_error("%s", words);
        return DRA_JOB_ENDED;
    }
    if (drajob_is_refused(object))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "the spec of DraJob %s is invalid: %s; correct it and apply it again",
                          name, words ? words : "?");
    /* a launcherUID that another manager reports is of no Job here */
    return drajob_launcher(object) && !drajob_manager(object) && !drajob_is_suspended(object)
               ? DRA_JOB_MADE
               : DRA_JOB_AWAITED;
}
