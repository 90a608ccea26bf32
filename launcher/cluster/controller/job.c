/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "jobs/status/drajob.h"
#include "jobs/status/reason.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/controller/sight.h"
#include "launcher/cluster/submit/cancel.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/submit/submit.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"

#define CLIENT_MS 60000 /* a client that makes the objects itself may take */
/* A job is large with more objects of workers, */
#define LARGE KUBE_CALLS_MAX
/* or with a longer text: its values take up to 28 times as much, and each place for a small one may
 * hold such. */
#define LARGE_TEXT ((size_t)64 << 10)
#define IN_WAY_MS 2000 /* for what is going; its place is another's meanwhile */

/* ---- making it ---- */

static void tell_refused(struct sight *s, const struct drarun_error *err)
{
    log_note("%s/%s: its spec is invalid: %s", s->namespace, s->name, err->text);
    s->c->tally.refused++;
    sight_tell_stage(s, DRAJOB_INVALID_SPEC, NULL, err->text, NULL);
}

static void on_launcher_told(struct sight *s)
{
    sight_unnote(s, s->c->made);
}

static void tell_launcher(struct sight *s, const char *uid)
{
    const struct drajob_input input = {.stage = DRAJOB_LED, .launcher = uid};
    sight_tell(s, &input, on_launcher_told);
}

static void made(struct sight *s, const char *uid)
{
    sight_note(s, s->c->pauses, json_null());
    sight_note(s, s->c->made, json_string(uid));
    sight_note(s, s->c->refused, json_null());
    log_note("%s/%s: its objects are made", s->namespace, s->name);
    s->c->tally.created++;
    tell_launcher(s, uid);
}

static void not_made(struct sight *s, const struct drarun_error *err)
{
    if (create_is_invalid(err)) {
        tell_refused(s, err);
        return;
    }
    s->c->tally.not_created++;
    log_note("%s/%s: %s", s->namespace, s->name, err->text);
    sight_tell_stage(s, DRAJOB_PENDING,
                     reason_name(err->code == EEXIST ? REASON_NAME_IN_USE : REASON_CANNOT_CREATE),
                     err->text, NULL);
    sight_again(s, sight_pause_ms(s));
}

/* rc: of submission_end. */
static void take_result(struct sight *s, int rc, const char *uid, const struct drarun_error *err)
{
    bool may_create = sight_is_leader(s) && !s->c->stop;
    if (rc == -ECANCELED || (rc < 0 && !may_create)) { /* who leads next starts over */
        log_note("%s/%s: %s", s->namespace, s->name, err->text);
        sight_again(s, 0);
    } else if (rc < 0)
        not_made(s, err);
    else
        made(s, uid);
}

/* Of one that was accepted: why another try is needed stays reported. NULL: it has its turn. */
static void tell_turn(struct sight *s, const char *text)
{
    const char *reason = sight_told_reason(s);
    if (drajob_is_accepted(s->object) && reason &&
        strcmp(reason, reason_name(REASON_ACCEPTED)) == 0)
        sight_tell_stage(s, DRAJOB_PENDING, NULL, text, NULL);
}

/* By the server's clock; 0: not known. */
static int64_t created_ms(const struct sight *s)
{
    int64_t created = 0;
    const json_t *metadata = json_object_get(s->object, "metadata");
    const char *text = json_string_value(json_object_get(metadata, "creationTimestamp"));
    return text && timestamp_parse(text, &created) ? created : 0;
}

static const struct queue *queue_of(const struct sight *s, bool large)
{
    return large ? &s->c->large : &s->c->small;
}

/* True: all places are taken, and it is looked at when it is its turn: after those that wait
 * longer. One that could not be created waits since then. */
static bool waits_for_turn(struct sight *s, bool large)
{
    const struct queue *queue = queue_of(s, large);
    int64_t created = created_ms(s), last = json_integer_value(sight_noted(s, queue->turns));
    sight_note(s, queue->waiting, json_integer(last > created ? last : created));
    if (controller_may_make(s->c, s->key, large)) {
        sight_unnote(s, queue->waiting);
        return false;
    }
    if (large)
        tell_turn(s,
                  "it waits for its turn: large jobs are created two at a time, one per namespace");
    return true;
}

/* It was found to be one before, by its spec, which need not be read for that again and again. */
static bool is_known_to_wait(struct sight *s)
{
    for (int large = 0; large < 2; large++)
        if (sight_noted(s, queue_of(s, large)->turns))
            return waits_for_turn(s, large);
    return false;
}

static void make(struct sight *s)
{
    struct drarun_error err = {0};
    struct submission *submission = NULL;
    bool large = create_count_of_workers(&s->spec) > LARGE || s->length > LARGE_TEXT;
    const struct queue *queue = queue_of(s, large);
    const struct submit_options options = {.namespace = s->namespace,
                                           .image = s->c->options->image,
                                           .dra_job = kube_uid(s->object),
                                           .going_ms = IN_WAY_MS};
    if (!sight_is_leader(s) || s->c->stop)
        return;
    if (!sight_noted(s, queue->turns))
        sight_note(s, queue->turns, json_integer(0));
    if (waits_for_turn(s, large))
        return;
    sight_note(s, queue->turns, json_integer(kube_client_now(s->c->cluster->client)));
    int rc = submission_begin(s->c->cluster, &s->spec, &options, &submission, &err);
    if (rc < 0) {
        take_result(s, rc, NULL, &err);
        return;
    }
    controller_make(s->c, s->key, kube_uid(s->object), large, submission);
    if (large)
        tell_turn(s, NULL);
}

/* The objects in the way are remains of an attempt of ours, whose end or refusal stays reported.
 * Once the Job is gone nobody knows whose the rest was: where we were refused, it is taken for
 * ours. */
static bool is_own_rest(const struct sight *s)
{
    const char *reason = sight_told_reason(s);
    if (s->job)
        return s->own_job && (!s->map || s->own_map);
    return reason && strcmp(reason, reason_name(REASON_CANNOT_CREATE)) == 0;
}

/* Nothing of an earlier job, nor of an earlier run of this one, may be in the way: a name is free
 * once its owner's garbage is collected. */
static bool is_clear(struct sight *s)
{
    struct drarun_error err = {0};
    int there = s->job || s->map ? 1 : sight_pods_remain(s, &err);
    if (s->waits)
        return false;
    if (s->own_job && !kube_is_terminating(s->job)) /* we died before its launcher led */
        course_delete_job(s);
    if (there == 0)
        return true;
    if (there < 0)
        log_note("%s/%s: %s", s->namespace, s->name, err.text);
    if (!is_own_rest(s))
        sight_tell_stage(
            s, DRAJOB_PENDING, reason_name(REASON_NAME_IN_USE),
            "objects of another job of that name still exist: waiting for their deletion", NULL);
    if (!s->job && !s->map) /* their end is watched */
        sight_again(s, there < 0 ? sight_pause_ms(s) : SIGHT_GOING_MS);
    return false;
}

/* A client that wrote the object makes the rest of it; once it was suspended, that is ours. */
static bool is_clients(const struct sight *s)
{
    const char *reason = sight_told_reason(s);
    return drajob_is_of_client(s->object) &&
           (!reason || strcmp(reason, reason_name(REASON_SUBMITTING)) == 0);
}

static bool is_young(const struct sight *s)
{
    int64_t created = created_ms(s);
    return created && kube_client_now(s->c->cluster->client) - created < CLIENT_MS;
}

/* It may have died on the way; or its job has ended, and is gone: it must not run twice. */
static void lose_client(struct sight *s)
{
    const struct drajob_input input = {
        .stage = DRAJOB_LOST,
        .reason = reason_name(REASON_CLIENT_LOST),
        .text = "its launcher's Job was deleted, or its client never created it: delete the "
                "DraJob, and submit it again to run it",
        .result = "failed",
        .exit = error_exit_status(DRARUN_ERR_INFRASTRUCTURE)};
    sight_tell(s, &input, NULL);
}

static void await_longer(struct sight *s)
{
    sight_again(s, CLIENT_MS / 4);
}

static void await_client(struct sight *s)
{
    if (s->own_job)
        tell_launcher(s, kube_uid(s->job));
    else if (!is_young(s))
        lose_client(s);
    else
        sight_tell_stage(s, DRAJOB_PENDING, reason_name(REASON_SUBMITTING),
                         "its client makes its objects", await_longer);
}

/* ---- its spec ---- */

static void not_read(struct sight *s, const struct drarun_error *err)
{
    if (err->kind == DRARUN_ERR_SPEC) {
        tell_refused(s, err);
        return;
    }
    log_note("%s/%s: cannot read its spec, retrying: %s", s->namespace, s->name, err->text);
    sight_again(s, sight_pause_ms(s));
}

/* True: all is created of the job but its status, which is told here, or the look waits for the
 * answer. A launcher that has written its document has taken the job over: what we have not
 * created, since we died, it has. */
static bool is_made(struct sight *s)
{
    CLEANUP(json_decrefp) json_t *doc = NULL;
    if (!s->own_job || kube_is_terminating(s->job))
        return false;
    if (!sight_is_noted(s, s->c->made, kube_uid(s->job))) {
        if (!sight_find_document(s, kube_uid(s->job), &doc))
            return true;
        if (!doc)
            return false;
    }
    tell_launcher(s, kube_uid(s->job));
    return true;
}

/* It is first told that the spec was accepted: with that the API server lets nobody change it, and
 * who changed it meanwhile makes this write fail. */
static void begin(struct sight *s)
{
    struct drarun_error err = {0};
    if (drajob_is_refused(s->object))
        return;
    if (drajob_is_accepted(s->object) && !s->own_job && !drajob_is_suspended(s->object) &&
        is_known_to_wait(s))
        return;
    int rc = sight_read_spec(s, &err);
    if (rc < 0)
        not_read(s, &err);
    if (rc != 0)
        return;
    if (drajob_is_suspended(s->object))
        course_suspend(s);
    else if (is_clients(s))
        await_client(s);
    else if (!drajob_is_accepted(s->object))
        sight_tell_stage(s, DRAJOB_PENDING, NULL, NULL, NULL);
    else if (!is_made(s) && is_clear(s))
        make(s);
}

/* ---- what became of it ---- */

static void decide(struct sight *s)
{
    const char *launcher = drajob_launcher(s->object);
    if (sight_is_noted(s, s->c->made, launcher)) /* the answer to that write may have been lost */
        sight_unnote(s, s->c->made);
    if (drajob_has_ended(s->object))
        course_tidy(s);
    else if (launcher)
        course_follow(s, launcher);
    else
        begin(s);
}

/* Its controller makes it, reports it and deletes it. Its status may be another cluster's: a
 * launcherUID there is of no Job here. */
static void leave_alone(const struct sight *s, const char *manager)
{
    log_verbose("%s/%s: ignored, because %s manages it", s->namespace, s->name, manager);
    sight_forget(s);
}

static void look(struct sight *s)
{
    const char *manager = drajob_manager(s->object);
    if (!s->object)
        sight_forget(s);
    else if (manager)
        leave_alone(s, manager);
    else if (!kube_is_terminating(s->object) &&
             !sight_is_noted(s, s->c->outdated, kube_resource_version(s->object)))
        decide(s);
}

/* ---- what is being made ---- */

/* `drarun cancel` asks its launcher for it. */
static bool is_cancelled(const json_t *job)
{
    const json_t *metadata = json_object_get(job, "metadata");
    return json_object_get(json_object_get(metadata, "annotations"), CANCEL_ANNOTATION);
}

/* Its launcher ends the job of which it has created the rest, or which is cancelled meanwhile;
 * nothing while the look waits. */
static bool is_ending(struct sight *s, const char *launcher)
{
    CLEANUP(json_decrefp) json_t *doc = NULL;
    if (!launcher)
        return false;
    if (!s->own_job || strcmp(kube_uid(s->job), launcher) != 0)
        return sight_job_is_gone(s, launcher);
    if (kube_is_terminating(s->job) || is_cancelled(s->job))
        return true;
    return s->own_map && sight_find_document(s, launcher, &doc) && doc && status_doc_exit(doc) >= 0;
}

/* Why nobody wants the rest any more; NULL: it is wanted. */
static const char *unwanted(const json_t *object, const struct making *making)
{
    if (!object || kube_is_terminating(object) || strcmp(kube_uid(object), making->uid) != 0)
        return "its DraJob was deleted";
    return drajob_is_suspended(object) ? "its DraJob was suspended" : NULL;
}

static void leave_making(const struct sight *s, const struct making *making)
{
    submission_leave(making->submission);
    course_await_late(s);
}

/* False: the look waits. */
static bool check_making(struct sight *s, const struct making *making)
{
    const char *why = unwanted(s->object, making);
    bool ending = !why && is_ending(s, submission_launcher(making->submission));
    if (s->waits)
        return false;
    if (why)
        submission_cancel(making->submission, why);
    else if (ending)
        leave_making(s, making);
    else
        log_verbose("%s/%s: its objects are being created", s->namespace, s->name);
    return true;
}

/* True: its objects are being created, or what came of it has been taken. */
static bool is_being_made(struct sight *s)
{
    struct drarun_error err = {0};
    cleanup_free char *uid = NULL;
    struct making *making = controller_find_making(s->c, s->key);
    if (!making)
        return false;
    bool wanted_at_once = s->c->stop || !sight_is_leader(s);
    if (!wanted_at_once && !making->undoing && !check_making(s, making))
        return true;
    controller_go_on(s->c, making);
    if (!making->over || controller_undo(making))
        return true;
    int rc = submission_end(TAKE_PTR(making->submission), &uid, &err);
    if (!s->object || strcmp(kube_uid(s->object), making->uid) != 0)
        return false; /* they were of one that is deleted, and are deleted with it */
    take_result(s, rc, uid, &err);
    return true;
}

void job_decide(struct sight *s)
{
    if (!is_being_made(s))
        look(s);
}
