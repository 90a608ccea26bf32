/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a job of a DraJob: its spec is read, its name becomes free, its turn comes, and
 * making.c creates its objects. */
#include <errno.h>
#include <string.h>

#include "jobs/status/drajob.h"
#include "jobs/status/reason.h"
#include "launcher/cluster/controller/sight.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/submit/submit.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define CLIENT_MS 60000 /* a client that makes the objects itself may take */
/* A job is large with more objects of workers, */
#define LARGE KUBE_CALLS_MAX
/* or with a longer text: its values take up to 28 times as much, and each place for a small one may
 * hold such. */
#define LARGE_TEXT ((size_t)64 << 10)
#define IN_WAY_MS 2000 /* for what is going; its place is another's meanwhile */
#define UNKNOWN_MS 1000

/* ---- what came of it ---- */

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

/* What was made goes, and each object that does, and the status that tells why, would end the pause
 * at once. */
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
    int64_t ms = sight_pause_ms(s);
    sight_note(s, s->c->rests, json_integer(clock_ms() + ms));
    sight_again(s, ms);
}

void begin_take_result(struct sight *s, int rc, const char *uid, const struct drarun_error *err)
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

/* ---- its turn ---- */

/* Of one that was accepted: why another try is needed stays reported. NULL: it has its turn. */
static void tell_turn(struct sight *s, const char *text)
{
    const char *reason = sight_told_reason(s);
    if (drajob_is_accepted(s->object) && reason &&
        strcmp(reason, reason_name(REASON_ACCEPTED)) == 0)
        sight_tell_stage(s, DRAJOB_PENDING, NULL, text, NULL);
}

static const struct queue *queue_of(const struct sight *s, bool large)
{
    return large ? &s->c->large : &s->c->small;
}

/* One that could not be created waits since then. */
static void note_waiting(const struct sight *s, const struct queue *queue)
{
    int64_t created = kube_created_ms(s->object);
    if (!sight_noted(s, queue->turns))
        sight_note(s, queue->turns, json_integer(0));
    int64_t last = json_integer_value(sight_noted(s, queue->turns));
    sight_note(s, queue->waiting, json_integer(last > created ? last : created));
}

/* True: all places are taken, and it is looked at when it is its turn: after those that wait
 * longer. */
static bool waits_for_turn(struct sight *s, bool large)
{
    note_waiting(s, queue_of(s, large));
    s->queued = true;
    if (controller_may_make(s->c, s->key, large)) {
        s->queued = false; /* the note stays while the look waits: none passes it meanwhile */
        return false;
    }
    if (large)
        tell_turn(s,
                  "it waits for its turn: large jobs are created two at a time, one per namespace");
    return true;
}

/* Its objects could not be made: it is looked at when they may be tried again. */
static bool rests(struct sight *s)
{
    const json_t *until = sight_noted(s, s->c->rests);
    int64_t left = until ? json_integer_value(until) - clock_ms() : 0;
    if (left > 0)
        sight_again(s, left);
    else
        sight_unnote(s, s->c->rests);
    return left > 0;
}

/* It was found to be one before, by its spec, which need not be read for that again and again. */
static bool is_known_to_wait(struct sight *s)
{
    for (int large = 0; large < 2; large++)
        if (sight_noted(s, queue_of(s, large)->turns))
            return waits_for_turn(s, large);
    return false;
}

static bool is_large(const struct sight *s)
{
    return create_count_of_workers(&s->spec) > LARGE || s->length > LARGE_TEXT;
}

/* A large one has its place from now on, so that no later one passes it while this look asks what
 * there is of it. Small ones do not wait for such answers about others. */
static void enter_queue(const struct sight *s)
{
    if (is_large(s))
        note_waiting(s, &s->c->large);
}

static void make(struct sight *s)
{
    struct drarun_error err = {0};
    struct submission *submission = NULL;
    bool large = is_large(s);
    const struct submit_options options = {.namespace = s->namespace,
                                           .image = s->c->options->image,
                                           .dra_job = kube_uid(s->object),
                                           .going_ms = IN_WAY_MS};
    if (!sight_is_leader(s) || s->c->stop)
        return;
    if (waits_for_turn(s, large))
        return;
    sight_note(s, queue_of(s, large)->turns, json_integer(kube_client_now(s->c->cluster->client)));
    int rc = submission_begin(s->c->cluster, &s->spec, &options, &submission, &err);
    if (rc < 0) {
        begin_take_result(s, rc, NULL, &err);
        return;
    }
    controller_make(s->c, s->key, kube_uid(s->object), large, submission);
    if (large)
        tell_turn(s, NULL);
}

/* ---- what is in the way ---- */

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
    if (there == 0) {
        sight_unnote(s, s->c->going);
        return true;
    }
    if (there < 0)
        log_note("%s/%s: %s", s->namespace, s->name, err.text);
    if (!is_own_rest(s))
        sight_tell_stage(
            s, DRAJOB_PENDING, reason_name(REASON_NAME_IN_USE),
            "objects of another job of that name still exist: waiting for their deletion", NULL);
    if (there < 0)
        sight_again(s, sight_pause_ms(s));
    else if (!s->job && !s->map) /* their end is watched */
        sight_await_end(s);
    return false;
}

/* ---- a client that makes it ---- */

/* A client that wrote the object makes the rest of it; once it was suspended, that is ours. */
static bool is_clients(const struct sight *s)
{
    const char *reason = sight_told_reason(s);
    return drajob_is_of_client(s->object) &&
           (!reason || strcmp(reason, reason_name(REASON_SUBMITTING)) == 0);
}

static bool is_young(const struct sight *s)
{
    int64_t created = kube_created_ms(s->object);
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

/* ---- the beginning ---- */

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

/* Its namespace may have a controller of its own by now, whose objects of the job would be deleted
 * as half made. */
static bool awaits_namespaces(struct sight *s)
{
    if (controller_knows_namespaces(s->c))
        return false;
    s->queued = sight_has_place(s);
    sight_again(s, UNKNOWN_MS);
    return true;
}

static void create_objects(struct sight *s)
{
    enter_queue(s);
    if (!is_made(s) && !awaits_namespaces(s) && is_clear(s))
        make(s);
}

/* It is first told that the spec was accepted: with that the API server lets nobody change it, and
 * who changed it meanwhile makes this write fail. */
void begin_job(struct sight *s)
{
    struct drarun_error err = {0};
    if (drajob_is_refused(s->object) || (!sight_noted(s, s->c->made) && awaits_namespaces(s)))
        return;
    if (drajob_is_suspended(s->object)) /* once it is resumed it is tried at once */
        sight_unnote(s, s->c->rests);
    else if (drajob_is_accepted(s->object) && !s->own_job && (rests(s) || is_known_to_wait(s)))
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
    else
        create_objects(s);
}
