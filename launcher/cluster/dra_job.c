/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/dra_job.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "jobs/drajob.h"
#include "launcher/cluster/job_map.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/watch.h"

#define TURN_MS 1000

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
    return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                      "there is no job %s in namespace %s; drarun list shows those there are", name,
                      namespace);
}

json_t *dra_job_list(struct cluster *cluster, const char *namespace)
{
    const struct kube_target target = target_of(NULL, namespace);
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *list = NULL;
    if (cluster_list(cluster, &target, NULL, &list, &err) < 0)
        log_verbose("%s", err.text);
    json_t *items = json_object_get(list, "items");
    return json_is_array(items) ? json_incref(items) : json_array();
}

int dra_job_delete(struct cluster *cluster, const char *name, const char *namespace,
                   struct drarun_error *err)
{
    const struct kube_target target = target_of(name, namespace);
    CLEANUP(json_decrefp) json_t *object = NULL;
    struct drarun_error local = {0};
    if (cluster_get(cluster, &target, &object, &local) < 0) {
        log_verbose("%s", local.text);
        return 0;
    }
    const struct kube_delete this = {.propagation = "Background", .uid = kube_uid(object)};
    int rc = cluster_delete(cluster, &target, &this, err);
    return rc < 0 ? rc : 1;
}

/* ---- waiting for it ---- */

static const json_t *status_of(const json_t *object)
{
    return json_object_get(object, "status");
}

static const char *status_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(status_of(object), key));
}

/* 2: nothing is made of it yet. */
static int judge(const json_t *object, const char *name, const char *namespace, int *ret_status,
                 struct drarun_error *err)
{
    const char *reason = status_text(object, "reason"), *words = status_text(object, "message");
    if (!object)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "the DraJob %s in namespace %s is gone",
                          name, namespace);
    if (drajob_has_ended(object)) {
        *ret_status = (int)json_integer_value(json_object_get(status_of(object), "exitStatus"));
        if (*ret_status != 0 && words)
            log_error("%s", words);
        return 1;
    }
    if (reason && strcmp(reason, DRAJOB_INVALID) == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "the spec of DraJob %s is refused: %s; correct it and apply it again",
                          name, words ? words : "?");
    return drajob_launcher(object) && !drajob_is_suspended(object) ? 0 : 2;
}

static void say_wait(const json_t *object, const char *name)
{
    const char *words = status_text(object, "message");
    log_note("nothing is made of DraJob %s yet: %s", name,
             words ? words : "no drarun controller has seen it");
}

static int await(struct cluster *cluster, const struct kube_watch *watch, const char *name,
                 const char *namespace, int64_t end_ms, const volatile sig_atomic_t *stop,
                 int *ret_status, struct drarun_error *err)
{
    bool said = false;
    int64_t since = clock_ms();
    for (;;) {
        const json_t *object = kube_watch_find(watch, namespace, name);
        int rc = kube_watch_synced(watch) ? judge(object, name, namespace, ret_status, err) : 2;
        if (rc != 2)
            return rc;
        if (stop && *stop)
            return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED, "interrupted");
        if (clock_ms() >= end_ms)
            return error_kind(err, DRARUN_ERR_TIMEOUT, ETIMEDOUT,
                              "the job %s has not ended in time", name);
        if (!said && clock_ms() - since > TURN_MS && (said = true))
            say_wait(object, name);
        cluster_turn(cluster, TURN_MS);
    }
}

static int await_one(struct cluster *cluster, const char *name, const char *namespace,
                     int64_t timeout_ms, const volatile sig_atomic_t *stop, int *ret_status,
                     struct drarun_error *err)
{
    static const struct kube_watch_events nothing;
    CLEANUP(kube_watch_freep) struct kube_watch *watch = NULL;
    const struct kube_watch_options options = {.target = target_of(name, namespace)};
    int rc = kube_watch_new(cluster->client, &options, &nothing, NULL, &watch, err);
    int64_t end = timeout_ms ? clock_ms() + timeout_ms : INT64_MAX;
    return rc < 0 ? rc : await(cluster, watch, name, namespace, end, stop, ret_status, err);
}

int dra_job_await_any(struct cluster *cluster, const char *name, const char *namespace,
                      int64_t timeout_ms, const volatile sig_atomic_t *stop, int *ret_status,
                      struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *object = NULL;
    struct drarun_error none = {0};
    int rc = job_map_get(cluster, name, namespace, &map, &none);
    if (rc == 0)
        return 0;
    if (rc != -ENOENT)
        return error_kind(err, none.kind, none.code, "%s", none.text);
    rc = dra_job_get(cluster, name, namespace, &object, err);
    return rc < 0 ? rc : await_one(cluster, name, namespace, timeout_ms, stop, ret_status, err);
}

int dra_job_await_again(struct cluster *cluster, const char *name, const char *namespace,
                        int64_t timeout_ms, const volatile sig_atomic_t *stop, int *ret_status,
                        struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *object = NULL;
    struct drarun_error local = {0};
    if (dra_job_get(cluster, name, namespace, &object, &local) < 0 || !drajob_is_suspended(object))
        return -err->code;
    log_note("the job %s is suspended", name);
    *err = (struct drarun_error){0};
    return await_one(cluster, name, namespace, timeout_ms, stop, ret_status, err);
}
