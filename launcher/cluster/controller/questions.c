/* SPDX-License-Identifier: Apache-2.0 */
/* What a look asks to know more of its job, as ask.c asks for it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/status/drajob.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/controller/sight.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"

/* What anyone may write is read within these limits. A spec as large as the API server takes them
 * is read in a tenth of a second; the controller's own limit of memory is 512 MiB, and two may be
 * read at once. */
static const struct bounded_limits read_limits = {
    .cpu_s = 2, .wall_ms = 20000, .memory = (size_t)128 << 20};

static int code_of(const struct sight_answer *answer, struct drarun_error *err)
{
    *err = answer->err;
    return -err->code;
}

/* ---- its spec ---- */

static int try_to_read(void *arg, struct drarun_error *err)
{
    struct job_spec spec;
    int rc = drajob_spec(arg, &spec, err);
    if (rc == 0)
        job_spec_done(&spec);
    return rc;
}

/* With what drajob_trim does not leave: from a list, which the role allows. */
static const struct sight_answer *ask_whole(struct sight *s)
{
    char fields[32 + K8S_SUBDOMAIN_MAX];
    const struct kube_target target = {.resource = &kube_dra_jobs, .namespace_ = s->namespace};
    const struct kube_select select = {.fields = fields};
    snprintf(fields, sizeof fields, "metadata.name=%s", s->name);
    return sight_list(s, SIGHT_WHOLE, &target, &select);
}

static int read_later(struct sight *s)
{
    s->held = true;
    return 1;
}

int sight_read_spec(struct sight *s, struct drarun_error *err)
{
    if (s->length > 0)
        return 0;
    if (!controller_take_reader(s))
        return read_later(s);
    const struct sight_answer *list = ask_whole(s);
    if (!list || list->err.code)
        return list ? code_of(list, err) : 1;
    json_t *whole = json_array_get(json_object_get(list->body, "items"), 0);
    if (!whole || strcmp(kube_resource_version(whole), kube_resource_version(s->object)) != 0)
        return read_later(s);
    const struct sight_answer *verdict =
        sight_call(s, SIGHT_VERDICT, &read_limits, try_to_read, whole);
    if (!verdict || verdict->err.code)
        return verdict ? code_of(verdict, err) : 1;
    int rc = drajob_spec(whole, &s->spec, err);
    if (rc < 0)
        return rc;
    s->length = json_dumpb(whole, NULL, 0, JSON_COMPACT);
    s->has_reader = false;
    sight_drop(s, SIGHT_WHOLE);
    return 0;
}

bool sight_has_spec(struct sight *s)
{
    struct drarun_error err = {0};
    int rc = sight_read_spec(s, &err);
    if (rc < 0) {
        log_note("%s/%s: cannot read its spec, retrying: %s", s->namespace, s->name, err.text);
        sight_again(s, sight_pause_ms(s));
    }
    return rc == 0;
}

/* ---- its launcher ---- */

/* Of a ConfigMap what job_map_status, kube_is_owned_by and kube_written_ms read. */
static void trim_map(json_t *map)
{
    static const char *const metadata[] = {"name", "uid", "ownerReferences", "managedFields", NULL};
    static const char *const data[] = {STATUS_DOC_KEY, NULL};
    value_keep_at(map, "metadata", metadata);
    value_cut_at(json_object_get(map, "metadata"), "ownerReferences", CONTROLLER_OWNERS_MAX);
    controller_trim_writes(map);
    value_keep_at(map, "data", data);
}

bool sight_find_document(struct sight *s, const char *launcher, json_t **ret_doc)
{
    char name[JOB_MAP_NAME_SIZE];
    const struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = s->namespace, .name = name};
    job_map_name(s->name, name);
    const struct sight_answer *map = sight_get(s, SIGHT_DOCUMENT, &target, trim_map);
    if (!map)
        return false;
    if (map->err.code && map->err.code != ENOENT) {
        int64_t ms = sight_pause_ms(s);
        log_note("%s/%s: cannot read its launcher's document, retrying in %" PRId64 " s: %s",
                 s->namespace, s->name, ms / 1000, map->err.text);
        sight_again(s, ms);
        return false;
    }
    if (kube_is_owned_by(map->body, launcher))
        job_map_status(map->body, ret_doc, NULL);
    return true;
}

int64_t sight_document_written_ms(const struct sight *s)
{
    return kube_written_ms(s->answers[SIGHT_DOCUMENT].body, NULL);
}

bool sight_job_is_gone(struct sight *s, const char *uid)
{
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = s->namespace, .name = s->name};
    const struct sight_answer *job = sight_get(s, SIGHT_JOB, &target, NULL);
    if (!job)
        return false;
    bool gone = job->err.code == ENOENT ||
                (job->err.code == 0 &&
                 (strcmp(kube_uid(job->body), uid) != 0 || kube_is_terminating(job->body)));
    if (!gone && job->err.code)
        sight_again(s, sight_pause_ms(s));
    else if (!gone)
        sight_await_end(s);
    return gone;
}

/* ---- its pods ---- */

void sight_trim_pod(json_t *pod)
{
    static const char *const metadata[] =
        {"name", "uid", "labels", "ownerReferences", "creationTimestamp", "deletionTimestamp",
         NULL},
                             *const labels[] = {CONTROLLER_LABEL, "drarun.dev/worker",
                                                "drarun.dev/workers", NULL};
    value_keep_at(pod, "metadata", metadata);
    value_keep_at(json_object_get(pod, "metadata"), "labels", labels);
    value_cut_at(json_object_get(pod, "metadata"), "ownerReferences", CONTROLLER_OWNERS_MAX);
}

const struct sight_answer *sight_list_launchers(struct sight *s, const char *fields,
                                                void (*trim)(json_t *pod))
{
    char labels[64 + K8S_LABEL_MAX];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = s->namespace};
    const struct kube_select select = {.labels = labels, .fields = fields, .trim = trim};
    snprintf(labels, sizeof labels, "batch.kubernetes.io/job-name=%s", s->name);
    const struct sight_answer *list = sight_list(s, SIGHT_LAUNCHERS, &target, &select);
    if (list && list->err.code)
        log_verbose("%s/%s: %s", s->namespace, s->name, list->err.text);
    return list;
}

/* Of pods that are only counted. */
static void drop_members(json_t *object)
{
    json_object_clear(object);
}

int sight_pods_remain(struct sight *s, struct drarun_error *err)
{
    char labels[32 + K8S_LABEL_MAX];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = s->namespace};
    const struct kube_select select = {
        .labels = labels, .metadata_only = true, .trim = drop_members};
    snprintf(labels, sizeof labels, "drarun.dev/job=%s", s->name);
    const struct sight_answer *list = sight_list(s, SIGHT_REMAINS, &target, &select);
    if (!list || list->err.code)
        return list ? code_of(list, err) : 0;
    return json_array_size(json_object_get(list->body, "items")) > 0;
}

static bool is_late_pod(const struct sight *s, const json_t *pod)
{
    return !kube_is_terminating(pod) && kube_is_owned_by(pod, kube_uid(s->job));
}

/* Of pods what is_late_pod and is_left_pod read. */
static void trim_late_pod(json_t *pod)
{
    static const char *const metadata[] = {"deletionTimestamp", "ownerReferences", NULL};
    value_keep_at(pod, "metadata", metadata);
    value_cut_at(json_object_get(pod, "metadata"), "ownerReferences", CONTROLLER_OWNERS_MAX);
}

int sight_count_late_pods(struct sight *s, struct drarun_error *err)
{
    char labels[64 + K8S_LABEL_MAX];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = s->namespace};
    const struct kube_select select = {
        .labels = labels, .metadata_only = true, .trim = trim_late_pod};
    json_t *pod;
    size_t i;
    int count = 0;
    snprintf(labels, sizeof labels, CONTROLLER_LABEL "=%s,drarun.dev/worker", s->name);
    const struct sight_answer *list = sight_list(s, SIGHT_LATE, &target, &select);
    if (!list || list->err.code)
        return list ? code_of(list, err) : 0;
    json_array_foreach(json_object_get(list->body, "items"), i, pod) count += is_late_pod(s, pod);
    return count;
}

/* The worker Job owns its pods, and is owned by the launcher's. */
static bool is_left_pod(const struct sight *s, const json_t *pod)
{
    char job[K8S_LABEL_MAX + 4];
    const json_t *owners = json_object_get(json_object_get(pod, "metadata"), "ownerReferences");
    snprintf(job, sizeof job, "%s-w", s->name);
    return !kube_is_terminating(pod) &&
           (kube_is_owned_by(pod, kube_uid(s->job)) || value_find(owners, "name", job));
}

int sight_count_left_pods(struct sight *s, struct drarun_error *err)
{
    char labels[96 + 2 * K8S_LABEL_MAX];
    const struct kube_target target = {.resource = &kube_pods, .namespace_ = s->namespace};
    const struct kube_select select = {.labels = labels,
                                       .fields = "status.phase!=Succeeded,status.phase!=Failed",
                                       .metadata_only = true,
                                       .trim = trim_late_pod};
    json_t *pod;
    size_t i;
    int count = 0;
    snprintf(labels, sizeof labels, CONTROLLER_LABEL "=%s,batch.kubernetes.io/job-name!=%s",
             s->name, s->name);
    const struct sight_answer *list = sight_list(s, SIGHT_LEFT, &target, &select);
    if (!list || list->err.code)
        return list ? code_of(list, err) : 0;
    json_array_foreach(json_object_get(list->body, "items"), i, pod) count += is_left_pod(s, pod);
    return count;
}
