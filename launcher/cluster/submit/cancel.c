/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/cancel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/status/status_doc.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/client/dra_job.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/client/launcher_silence.h"
#include "launcher/cluster/client/lease.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* Malloc'ed; NULL: nobody holds its Lease, or that is not known. */
static char *holder_of(struct cluster *cluster, const char *name, const char *namespace)
{
    const struct kube_target target = {
        .resource = &kube_leases, .namespace_ = namespace, .name = name};
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *lease = NULL;
    if (cluster_get(cluster, &target, &lease, &err) < 0)
        return NULL;
    const char *holder =
        json_string_value(json_object_get(json_object_get(lease, "spec"), "holderIdentity"));
    return holder ? strdup(holder) : NULL;
}

static bool has_phase(const json_t *pod, const char *phase)
{
    const char *now = json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));
    return now && strcmp(now, phase) == 0;
}

/* The kubelet may be late to tell that it runs: then its Lease does. */
static bool is_running(const json_t *pod, const char *holder)
{
    bool holds = holder && strcmp(kube_name(pod), holder) == 0;
    bool over = has_phase(pod, "Succeeded") || has_phase(pod, "Failed");
    return has_phase(pod, "Running") || (holds && !over);
}

static int list_pods(struct cluster *cluster, const char *namespace, const char *label,
                     const char *value, json_t **ret_list, struct drarun_error *err)
{
    char selector[96];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = namespace};
    const struct kube_select select = {.labels = selector};
    snprintf(selector, sizeof selector, "%s=%s", label, value);
    return cluster_list(cluster, &target, &select, ret_list, err);
}

/* 1: a pod of the launcher Job runs. */
static int launcher_runs(struct cluster *cluster, const char *name, const char *namespace,
                         struct drarun_error *err)
{
    size_t i;
    json_t *pod;
    CLEANUP(json_decrefp) json_t *list = NULL;
    int rc = list_pods(cluster, namespace, "batch.kubernetes.io/job-name", name, &list, err);
    if (rc < 0)
        return rc;
    cleanup_free char *holder = holder_of(cluster, name, namespace);
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        if (is_running(pod, holder))
            return 1;
    }
    return 0;
}

static void say_end(const char *name, const json_t *doc)
{
    struct buf how = BUF_INIT;
    status_doc_end(doc, lead_now(), &how);
    log_note("job %s had ended before: %s; its remaining objects are deleted", name,
             how.data ? how.data : "?");
    buf_done(&how);
}

int cancel_ended(struct cluster *cluster, const char *name, const char *namespace,
                 struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL, *doc = NULL;
    const char *text = NULL;
    struct drarun_error none = {0};
    int found = job_map_get(cluster, name, namespace, &map, &none);
    if (found < 0 && none.kind == DRARUN_ERR_INFRASTRUCTURE) /* there is nobody to be asked more */
        return error_kind(err, none.kind, none.code, "%s", none.text);
    if (found == 0)
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

/* ---- without its launcher ---- */

static void delete_now(struct cluster *cluster, const json_t *pod)
{
    const struct kube_target target = {
        .resource = &kube_pods, .namespace_ = kube_namespace(pod), .name = kube_name(pod)};
    const struct kube_delete options = {.uid = kube_uid(pod), .now = true};
    struct drarun_error err = {0};
    if (cluster_delete(cluster, &target, &options, &err) < 0)
        log_note("pod %s and what it claims stay until its node answers or is deleted: %s",
                 kube_name(pod), err.text);
}

/* A lost node has no kubelet that would confirm the deletion: their pods are deleted by force. */
static int delete_pods_of_lost_nodes(struct cluster *cluster, const char *name,
                                     const char *namespace, const struct launcher_silence *silence,
                                     struct drarun_error *err)
{
    size_t i;
    json_t *pod;
    CLEANUP(json_decrefp) json_t *list = NULL;
    int rc = list_pods(cluster, namespace, "drarun.dev/job", name, &list, err);
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        if (strcmp(kube_name(pod), silence->holder) == 0 || launcher_silence_has_lost_node(pod))
            delete_now(cluster, pod);
    }
    return rc;
}

/* here: its owner is the ConfigMap. */
static int cancel_silent(struct cluster *cluster, const char *name, const char *namespace,
                         bool here, const struct launcher_silence *silence,
                         struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    launcher_silence_text(silence, &text);
    log_note("%s; job %s is cancelled without it: its pods, claims and status are deleted",
             text.data ? text.data : "its launcher is silent", name);
    buf_done(&text);
    int rc = delete_job(cluster, name, namespace, here, NULL, err);
    return rc < 0 ? rc : delete_pods_of_lost_nodes(cluster, name, namespace, silence, err);
}

/* A launcher in its pod; the owner is its Job. */
static int cancel_led(struct cluster *cluster, const char *name, const char *namespace,
                      struct drarun_error *err)
{
    CLEANUP(launcher_silence_done) struct launcher_silence silence = {0};
    int rc = launcher_runs(cluster, name, namespace, err);
    if (rc <= 0)
        return rc < 0 ? rc : delete_job(cluster, name, namespace, false, NULL, err);
    return launcher_silence_look(cluster, name, namespace, &silence)
               ? cancel_silent(cluster, name, namespace, false, &silence, err)
               : 0;
}

/* The owner is the ConfigMap, which has the wish. */
static int cancel_here(struct cluster *cluster, const char *name, const char *namespace,
                       struct drarun_error *err)
{
    CLEANUP(launcher_silence_done) struct launcher_silence silence = {0};
    if (launcher_silence_look(cluster, name, namespace, &silence))
        return cancel_silent(cluster, name, namespace, true, &silence, err);
    bool alone = !lease_is_held(cluster, name, namespace);
    return alone ? delete_job(cluster, name, namespace, true, NULL, err) : 0;
}

/* Nothing is made of it yet, or nothing is left. */
static int cancel_dra_job(struct cluster *cluster, const char *name, const char *namespace,
                          struct drarun_error *err)
{
    int rc = dra_job_delete(cluster, name, namespace, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "there is no job %s in namespace %s", name,
                      namespace);
}

/* -ENOENT: there is no such owner. */
static int ask(struct cluster *cluster, const struct kube_target *owner, struct drarun_error *err)
{
    struct drarun_error local = {0};
    CLEANUP(json_decrefp)
    json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", CANCEL_ANNOTATION, "now");
    if (!patch)
        return error_set(err, ENOMEM, "out of memory");
    int rc = cluster_merge_patch(cluster, owner, patch, &local);
    if (rc < 0 && rc != -ENOENT)
        error_kind(err, local.kind, local.code, "%s", local.text);
    return rc;
}

int cancel_job(struct cluster *cluster, const char *name, const char *namespace,
               struct drarun_error *err)
{
    char status[JOB_MAP_NAME_SIZE];
    job_map_name(name, status);
    const struct kube_target job = {.resource = &kube_jobs, .namespace_ = namespace, .name = name};
    const struct kube_target map = {
        .resource = &kube_config_maps, .namespace_ = namespace, .name = status};
    int rc = cancel_ended(cluster, name, namespace, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = ask(cluster, &job, err);
    if (rc != -ENOENT)
        return rc < 0 ? rc : cancel_led(cluster, name, namespace, err);
    rc = ask(cluster, &map, err);
    if (rc != -ENOENT)
        return rc < 0 ? rc : cancel_here(cluster, name, namespace, err);
    return cancel_dra_job(cluster, name, namespace, err);
}
