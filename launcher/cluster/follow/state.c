/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/job_map.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"

static void tell_changed(struct follow_state *s)
{
    s->owner.changed(s->owner.arg);
}

void follow_state_done(struct follow_state *s)
{
    kube_call_cancel(s->asking);
    kube_watch_free(s->status);
    kube_watch_free(s->pods);
    kube_watch_free(s->jobs);
    json_decref(s->doc);
    free(s->led_by);
    follow_pod_done(&s->pod);
}

const json_t *follow_state_map(const struct follow_state *s)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(s->job, name);
    return kube_watch_find(s->status, s->namespace, name);
}

bool follow_state_knows_logs(const struct follow_state *s)
{
    return kube_watch_synced(s->pods) && kube_watch_synced(s->status);
}

static bool is_of_job(const struct follow_state *s, const json_t *object)
{
    return !s->uid || kube_is_owned_by(object, s->uid);
}

static void note_end(struct follow_state *s, int status)
{
    if (s->ended_ms)
        return;
    s->ended_ms = clock_ms();
    s->exit_status = status;
}

void follow_state_take_end(struct follow_state *s, const json_t *record)
{
    const json_t *cause = json_object_get(record, "cause");
    const char *launcher = json_string_value(json_object_get(record, "launcher"));
    note_end(s, (int)json_integer_value(json_object_get(record, "status")));
    if (launcher && !s->led_by)
        s->led_by = strdup(launcher);
    if (cause && !json_object_get(s->doc, "cause"))
        json_decref(s->doc), s->doc = json_pack("{s:O}", "cause", cause);
}

static const json_t *launcher_of(const struct follow_state *s)
{
    return json_object_get(s->doc, "launcher");
}

const char *follow_state_leader(const struct follow_state *s)
{
    return s->led_by ? s->led_by : json_string_value(json_object_get(launcher_of(s), "pod"));
}

uint64_t follow_state_lines(const struct follow_state *s, const char *pod)
{
    const char *leader = follow_state_leader(s);
    json_int_t lines = json_integer_value(json_object_get(launcher_of(s), "lines"));
    return lines > 0 && leader && pod && strcmp(leader, pod) == 0 ? (uint64_t)lines : 0;
}

static struct follow_leader leader(const struct follow_state *s)
{
    return (struct follow_leader){follow_state_leader(s), s->ended_ms != 0};
}

/* An ended job has one log; whose it is the document tells. */
static bool may_choose(const struct follow_state *s)
{
    return s->choose && kube_watch_synced(s->status);
}

void follow_state_choose(struct follow_state *s)
{
    const struct follow_leader now = leader(s);
    if (may_choose(s) && follow_pod_look(&s->pod, &now))
        s->owner.chosen(s->owner.arg);
}

static void look_at_pod(const json_t *pod, void *arg)
{
    struct follow_state *s = arg;
    const struct follow_leader now = leader(s);
    if (may_choose(s) && follow_pod_see(&s->pod, &now, pod))
        s->owner.chosen(s->owner.arg);
}

static void on_pod(const json_t *pod, void *arg)
{
    look_at_pod(pod, arg);
    follow_state_choose(arg);
    tell_changed(arg);
}

static void on_pod_changed(const json_t *pod, const json_t *before, void *arg)
{
    (void)before;
    on_pod(pod, arg);
}

static void on_pod_deleted(const json_t *pod, void *arg)
{
    (void)pod;
    tell_changed(arg);
}

static void take_status(const json_t *map, void *arg)
{
    struct follow_state *s = arg;
    json_t *doc = NULL;
    if (!is_of_job(s, map) || job_map_status(map, &doc, NULL) < 0)
        return;
    json_t *cause = json_object_get(s->doc, "cause"); /* the log may be ahead of the document */
    if (cause && !json_object_get(doc, "cause"))
        json_object_set(doc, "cause", cause);
    json_decref(s->doc);
    s->doc = doc;
    if (status_doc_exit(doc) >= 0)
        note_end(s, status_doc_exit(doc));
    follow_state_choose(s);
}

static void on_status(const json_t *map, void *arg)
{
    take_status(map, arg);
    tell_changed(arg);
}

static void on_status_changed(const json_t *map, const json_t *before, void *arg)
{
    (void)before;
    on_status(map, arg);
}

static void ask_for_last_word(struct follow_state *s);

static void on_last_word(const struct kube_answer *answer, const struct drarun_error *err,
                         void *arg)
{
    struct follow_state *s = arg;
    s->asking = NULL;
    s->last_word = !err || err->kind != DRARUN_ERR_INFRASTRUCTURE;
    if (!err)
        take_status(answer->body, s);
    ask_for_last_word(s);
    tell_changed(s);
}

/* The launcher writes how the job ended before it ends itself, and the watch of its document may be
 * behind that of its Job. */
static void ask_for_last_word(struct follow_state *s)
{
    char name[JOB_MAP_NAME_SIZE];
    struct drarun_error err = {0};
    const struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = s->namespace, .name = name};
    job_map_name(s->job, name);
    if (!s->last_word && !s->asking &&
        kube_get(s->client, &target, on_last_word, s, &s->asking, &err) < 0)
        s->last_word = true;
    /* a launcher ends with the status of its job */
    if (s->completed && s->last_word)
        note_end(s, 0);
}

static void note_failed(struct follow_state *s, const json_t *job, const char *message)
{
    if (s->ended_ms || s->failed.code)
        return;
    error_kind(&s->failed, DRARUN_ERR_INFRASTRUCTURE, ECHILD, "the launcher Job %s failed: %s",
               kube_name(job), message ? message : "?");
    s->failed_ms = clock_ms();
    ask_for_last_word(s);
}

/* Its launcher may have been told to go before it could write the end, or may not write it. */
static void note_completed(struct follow_state *s)
{
    if (s->ended_ms || s->completed)
        return;
    s->completed = true;
    ask_for_last_word(s);
}

/* One of another program may have the name of a job of run --here, which has no Job. */
static bool is_launcher_job(const struct follow_state *s, const json_t *job)
{
    const json_t *labels = json_object_get(json_object_get(job, "metadata"), "labels");
    return strcmp(value_text_or(labels, "drarun.dev/job", ""), s->job) == 0;
}

/* What the launcher Job says of its end. Where it has failed without a word of its launcher, no pod
 * could be made, or the launcher crashed. */
static void take_job(const json_t *job, void *arg)
{
    struct follow_state *s = arg;
    if (s->uid && strcmp(kube_uid(job), s->uid) != 0)
        return;
    if (kube_has_condition(job, "Failed"))
        note_failed(s, job, value_text(kube_condition(job, "Failed"), "message"));
    if (kube_has_condition(job, "Complete") && is_launcher_job(s, job))
        note_completed(s);
}

static void on_job(const json_t *job, void *arg)
{
    take_job(job, arg);
    tell_changed(arg);
}

static void on_job_changed(const json_t *job, const json_t *before, void *arg)
{
    (void)before;
    on_job(job, arg);
}

static void on_job_deleted(const json_t *job, void *arg)
{
    struct follow_state *s = arg;
    take_job(job, s); /* it may have failed, and its controller have deleted it, at once */
    s->gone |= !s->uid || strcmp(kube_uid(job), s->uid) == 0;
    if (s->gone && s->completed)
        note_end(s, 0);
    tell_changed(s);
}

static void on_status_synced(void *arg)
{
    struct follow_state *s = arg;
    kube_watch_each(s->pods, look_at_pod, s);
    follow_state_choose(s);
    tell_changed(s);
}

static void on_synced(void *arg)
{
    tell_changed(arg);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    struct follow_state *s = arg;
    if (err && err->code == EACCES)
        s->trouble = *err;
    else if (err)
        log_note("%s", err->text);
    tell_changed(s);
}

static const struct kube_watch_events status_events = {.added = on_status,
                                                       .changed = on_status_changed,
                                                       .synced = on_status_synced,
                                                       .trouble = on_trouble};
static const struct kube_watch_events pod_events = {.added = on_pod,
                                                    .changed = on_pod_changed,
                                                    .deleted = on_pod_deleted,
                                                    .synced = on_synced,
                                                    .trouble = on_trouble};
static const struct kube_watch_events job_events = {.added = on_job,
                                                    .changed = on_job_changed,
                                                    .deleted = on_job_deleted,
                                                    .synced = on_synced,
                                                    .trouble = on_trouble};

static int watch(struct follow_state *s, struct kube_client *client,
                 const struct kube_resource *resource, const char *name, const char *labels,
                 const struct kube_watch_events *events, struct kube_watch **ret_watch,
                 struct drarun_error *err)
{
    const struct kube_watch_options options = {
        .target = {.resource = resource, .namespace_ = s->namespace, .name = name},
        .select.labels = labels,
    };
    return kube_watch_new(client, &options, events, s, ret_watch, err);
}

int follow_state_watch(struct follow_state *s, struct kube_client *client, struct drarun_error *err)
{
    char name[JOB_MAP_NAME_SIZE], selector[96];
    s->client = client;
    job_map_name(s->job, name);
    snprintf(selector, sizeof selector, "batch.kubernetes.io/job-name=%s", s->job);
    int rc = watch(s, client, &kube_config_maps, name, NULL, &status_events, &s->status, err);
    if (rc == 0)
        rc = watch(s, client, &kube_pods, NULL, selector, &pod_events, &s->pods, err);
    if (rc == 0)
        rc = watch(s, client, &kube_jobs, s->job, NULL, &job_events, &s->jobs, err);
    s->pod.namespace = s->namespace;
    s->pod.job = s->job;
    s->pod.uid = s->uid;
    s->pod.pods = s->pods;
    return rc;
}

bool follow_state_is_running(const struct follow_state *s)
{
    const char *phase = json_string_value(json_object_get(s->doc, "phase"));
    return !s->ended_ms && phase && strcmp(phase, "running") == 0;
}

bool follow_state_is_suspended(const struct follow_state *s)
{
    return object_is_suspended(kube_watch_find(s->jobs, s->namespace, s->job));
}

bool follow_state_has_job(const struct follow_state *s)
{
    const json_t *job = kube_watch_find(s->jobs, s->namespace, s->job);
    bool other = job && s->uid && strcmp(kube_uid(job), s->uid) != 0;
    return job && !other && !kube_is_terminating(job);
}

const char *follow_state_queue(const struct follow_state *s)
{
    return object_queue(kube_watch_find(s->jobs, s->namespace, s->job));
}

bool follow_state_has_launcher(const struct follow_state *s)
{
    return s->pod.name || launcher_of(s);
}

/* Of the launcher Job; without one, run --here, it is nobody's. */
static bool has_owned_map(const struct follow_state *s)
{
    const json_t *metadata = json_object_get(follow_state_map(s), "metadata");
    return json_object_get(metadata, "ownerReferences");
}

/* A job that was deleted before it was watched is told of by nobody; its ConfigMap goes later. */
static bool is_deleted(const struct follow_state *s)
{
    if (!kube_watch_synced(s->jobs) || !kube_watch_synced(s->status))
        return false;
    const json_t *job = kube_watch_find(s->jobs, s->namespace, s->job);
    if (s->uid)
        return !job || strcmp(kube_uid(job), s->uid) != 0;
    return !job && (kube_watch_count(s->status) == 0 || has_owned_map(s));
}

bool follow_state_is_gone(struct follow_state *s)
{
    s->gone |= is_deleted(s);
    return s->gone;
}

bool follow_state_leader_is_there(const struct follow_state *s)
{
    return follow_pod_find(&s->pod, follow_state_leader(s)) != NULL;
}

/* Of the log's end, which may be ahead of the document; it is not read where nothing is shown. */
const json_t *follow_state_cause(const struct follow_state *s)
{
    const json_t *cause = json_object_get(s->doc, "cause");
    return cause ? cause : json_object_get(json_object_get(s->doc, "report"), "cause");
}
