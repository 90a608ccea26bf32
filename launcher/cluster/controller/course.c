/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a job whose objects were made: what its launcher reports, its end, and what is
 * deleted then. */
#include <errno.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "jobs/outcome/failure_rule.h"
#include "jobs/status/drajob.h"
#include "jobs/status/reason.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/launcher_pod.h"
#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"

#define LOG_MS 10000    /* for reading the log of a launcher whose Job is deleted then */
#define LATE_MS 120000  /* after its end no call that created its pods is processed any more */
#define INTERRUPTED 130 /* as a cancelled job's */
#define LAUNCHER_LOST "LauncherLost" /* the cause, as a reason */

/* ---- away with it ---- */

static void on_job_deleted(struct sight *s, const struct drarun_error *err)
{
    if (!err)
        sight_unnote(s, s->c->made);
    if (err && err->code != EBUSY)
        log_note("%s/%s: %s", s->namespace, s->name, err->text);
    sight_again(s, err ? sight_pause_ms(s) : SIGHT_GOING_MS);
}

void course_delete_job(struct sight *s)
{
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = s->namespace, .name = s->name};
    sight_delete(s, &target, kube_uid(s->job), on_job_deleted);
}

void course_suspend(struct sight *s)
{
    struct drarun_error err = {0};
    bool rest = s->own_job || s->own_map || sight_pods_remain(s, &err) != 0;
    if (s->waits)
        return;
    if (s->own_job && !kube_is_terminating(s->job))
        course_delete_job(s);
    sight_tell_stage(s, rest ? DRAJOB_SUSPENDING : DRAJOB_SUSPENDED, NULL, NULL, NULL);
    if (rest)
        sight_await_end(s);
    else
        sight_unnote(s, s->c->going);
}

/* ---- what becomes of it ---- */

/* The launcher's Job has failed, and its launcher may have had no word: it crashed, or got no pod.
 */
static const char *failure(const json_t *job)
{
    const char *message = value_text(kube_condition(job, "Failed"), "message");
    if (!kube_has_condition(job, "Failed"))
        return NULL;
    return message ? message : "its launcher's Job failed";
}

static void lose(struct sight *s, struct drajob_input *input, const char *failed)
{
    input->stage = DRAJOB_LOST;
    input->reason = reason_name(failed ? REASON_LAUNCHER_FAILED : REASON_JOB_DELETED);
    input->text = failed ? failed : "its launcher's Job was deleted";
    input->result = failed ? "failed" : "cancelled";
    input->exit = failed ? error_exit_status(DRARUN_ERR_INFRASTRUCTURE) : INTERRUPTED;
    sight_tell(s, input, NULL);
}

/* A launcher ends with the status of its ranks. */
static void succeed(struct sight *s, struct drajob_input *input)
{
    input->stage = DRAJOB_LOST;
    input->reason = reason_name(REASON_LAUNCHER_COMPLETED);
    input->text = "all ranks have ended; their launcher could not write that to its document";
    input->result = "succeeded";
    sight_tell(s, input, NULL);
}

/* What launcher_pod_add_end reads. */
static void trim_pod(json_t *pod)
{
    static const char *const status[] = {"containerStatuses", NULL};
    sight_trim_pod(pod);
    json_object_del(pod, "spec");
    value_keep_at(pod, "status", status);
    json_t *kept = json_object_get(pod, "status");
    json_t *own = value_find(json_object_get(kept, status[0]), "name", OBJECT_LAUNCHER_CONTAINER);
    json_object_set_new(kept, status[0], own ? json_pack("[O]", own) : json_array());
}

/* What Kubernetes says of the Job, and what the pod of its launcher has told the kubelet. */
static void fail(struct sight *s, struct drajob_input *input, const char *failed)
{
    struct buf words = BUF_INIT, text = BUF_INIT;
    const struct sight_answer *list = sight_list_launchers(s, NULL, trim_pod);
    if (!list)
        return;
    launcher_pod_add_end(list->body, kube_uid(s->job), &words);
    buf_printf(&text, "%s%s%s", failed, words.data ? "; " : "", words.data ? words.data : "");
    lose(s, input, text.data ? text.data : failed);
    buf_done(&words);
    buf_done(&text);
}

/* Agents give up their ranks when they have heard nothing of a launcher for the life of its Lease.
 * One that writes its document lives. */
static bool is_over(struct sight *s, const json_t *doc)
{
    uint32_t used[FAILURE_COUNTS] = {0};
    const json_t *silent = sight_noted(s, s->c->silent);
    const char *before = json_string_value(json_object_get(silent, "map"));
    bool same = !s->map || (before && strcmp(before, kube_resource_version(s->map)) == 0);
    if (!json_is_true(json_object_get(silent, "over")) || !same)
        return false;
    if (!sight_has_spec(s))
        return false;
    status_doc_counts(doc, &used[FAILURE_COUNT_RESTARTS], &used[FAILURE_COUNT_INFRASTRUCTURE]);
    return failure_launcher_is_last(&s->spec, used);
}

static void give_up(struct drajob_input *input, const char *reason, const char *text,
                    enum drarun_errkind kind)
{
    input->stage = DRAJOB_LOST;
    input->reason = reason;
    input->text = text;
    input->result = "failed";
    input->exit = error_exit_status(kind);
}

/* With restarts left, the next launcher goes on once the pod of this one is gone. */
static void tell_led(struct sight *s, struct drajob_input *input)
{
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    struct drarun_error end = {0};
    input->silence = json_string_value(json_object_get(sight_noted(s, s->c->silent), "text"));
    bool over = input->silence && is_over(s, input->doc);
    if (!s->waits && !input->doc)
        input->text = starting_words(s, &words, &end);
    if (s->waits)
        return;
    if (over)
        give_up(input, LAUNCHER_LOST, input->silence, DRARUN_ERR_INFRASTRUCTURE);
    else if (end.code)
        give_up(input, reason_name(REASON_LAUNCHER_NOT_STARTED), end.text, end.kind);
    sight_tell(s, input, NULL);
}

void course_follow(struct sight *s, const char *launcher)
{
    CLEANUP(json_decrefp) json_t *doc = NULL;
    bool there = s->job && strcmp(kube_uid(s->job), launcher) == 0 && !kube_is_terminating(s->job);
    const char *failed = there ? failure(s->job) : NULL;
    bool complete = there && kube_has_condition(s->job, "Complete");
    /* the launcher writes its job's end before it ends itself, and the watch of documents may be
     * behind that of Jobs: a job that is told to be lost is deleted */
    bool writes = failed || complete || kube_is_owned_by(s->map, launcher);
    if (writes && !sight_find_document(s, launcher, &doc))
        return;
    struct drajob_input input = {.stage = DRAJOB_LED, .launcher = launcher, .doc = doc};
    input.written_ms = sight_document_written_ms(s);
    if (doc && status_doc_exit(doc) >= 0)
        sight_tell(s, &input, NULL);
    else if (complete)
        succeed(s, &input);
    else if (drajob_is_suspended(s->object))
        course_suspend(s);
    else if (failed)
        fail(s, &input, failed);
    else if (!there && sight_job_is_gone(s, launcher))
        lose(s, &input, NULL);
    else if (there)
        tell_led(s, &input);
}

/* ---- once it has ended ---- */

/* So long after the job's end: its Job, and with it pods of its workers, if there are any. which:
 * of them, for a message. True: there are none by then. */
static bool delete_with_pods(struct sight *s, int64_t after_ms,
                             int (*count_pods)(struct sight *s, struct drarun_error *err),
                             const char *which)
{
    struct drarun_error err = {0};
    int64_t left = drajob_end_ms(s->object) + after_ms - controller_now(s->c);
    if (left > 0) {
        sight_again(s, left);
        return false;
    }
    int count = count_pods(s, &err);
    if (s->waits)
        return false;
    if (count < 0) {
        log_note("%s/%s: cannot look for pods that %s, retrying: %s", s->namespace, s->name, which,
                 err.text);
        sight_again(s, sight_pause_ms(s));
    } else if (count > 0) {
        log_note("%s/%s: %d pods %s: deleting its Job, and the pods with it", s->namespace, s->name,
                 count, which);
        course_delete_job(s);
    }
    return count == 0;
}

/* Nobody leads the job any more, and its workers would hold their devices: agents that no launcher
 * has reached wait for one without limit. */
static void delete_failed(struct sight *s)
{
    const char *reason = sight_told_reason(s);
    int64_t left = drajob_end_ms(s->object) + LOG_MS - controller_now(s->c);
    if (!s->own_job || kube_is_terminating(s->job) || !reason ||
        (strcmp(reason, reason_name(REASON_LAUNCHER_FAILED)) != 0 &&
         strcmp(reason, reason_name(REASON_LAUNCHER_NOT_STARTED)) != 0 &&
         strcmp(reason, LAUNCHER_LOST) != 0))
        return;
    if (left > 0)
        sight_again(s, left);
    else
        course_delete_job(s);
}

/* Likewise where it has ended well and could not reach the API server. Its log is the output of the
 * ranks: it goes only with workers that hold their devices, as for a container beside the ranks'.
 */
static void delete_left(struct sight *s)
{
    const char *reason = sight_told_reason(s);
    if (s->own_job && !kube_is_terminating(s->job) && reason &&
        strcmp(reason, reason_name(REASON_LAUNCHER_COMPLETED)) == 0)
        delete_with_pods(s, LOG_MS, sight_count_left_pods, "were left when the job had ended");
}

void course_await_late(const struct sight *s)
{
    sight_note(s, s->c->late, json_integer(LOG_MS));
}

/* The launcher has deleted the workers of a job that ended while they were created here. A call
 * that was under way may have created one after that: it would hold its devices, and neither
 * launcher nor controller would delete it. With the launcher's Job it goes. */
static void delete_late(struct sight *s)
{
    json_int_t after = json_integer_value(sight_noted(s, s->c->late));
    if (after == 0 || !s->own_job || kube_is_terminating(s->job) ||
        !delete_with_pods(s, after, sight_count_late_pods, "were created after the job ended"))
        return;
    if (after < LATE_MS) {
        sight_note(s, s->c->late, json_integer(2 * after));
        sight_again(s, after);
    } else {
        sight_unnote(s, s->c->late);
    }
}

static void on_dated(struct sight *s, const struct drarun_error *err)
{
    if (!err || err->code == ENOENT)
        return;
    if (err->code != EBUSY)
        log_note("%s/%s: cannot write the time of its deletion: %s", s->namespace, s->name,
                 err->text);
    sight_write_again(s, err);
}

/* The site's time to live may be another than when the job ended. true: the status has the time of
 * today's. */
static bool is_dated(struct sight *s)
{
    static const struct drarun_error no_memory = {.code = ENOMEM, .text = "out of memory"};
    json_t *status = drajob_dated_status(s->object, s->c->options->site_ttl_ms);
    bool same = status && json_equal(status, json_object_get(s->object, "status"));
    if (same)
        json_decref(status);
    else if (status)
        sight_write_status(s, status, on_dated);
    else
        on_dated(s, &no_memory);
    return same;
}

static void on_expired(struct sight *s, const struct drarun_error *err)
{
    if (!err) {
        s->c->tally.expired++;
        return;
    }
    log_note("%s/%s has expired and cannot be deleted: %s", s->namespace, s->name, err->text);
    sight_again(s, sight_pause_ms(s));
}

/* Deletes it when its time to live is over: that of its spec, else the site's. */
static void expire(struct sight *s)
{
    int64_t at = drajob_expiration_ms(s->object, s->c->options->site_ttl_ms);
    int64_t left = at - controller_now(s->c);
    const struct kube_target target = {
        .resource = &kube_dra_jobs, .namespace_ = s->namespace, .name = s->name};
    if (at != 0 && left <= 0)
        sight_delete(s, &target, kube_uid(s->object), on_expired);
    else if (is_dated(s) && at != 0)
        sight_again(s, left);
}

/* It has ended. What is asked for comes first: nothing is changed before all is known. */
void course_tidy(struct sight *s)
{
    delete_late(s);
    if (!s->waits)
        delete_left(s);
    if (s->waits)
        return;
    delete_failed(s);
    expire(s);
}
