/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/lead.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "jobs/manifests/objects.h"
#include "launcher/cluster/submit/cancel.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/client/expire.h"
#include "launcher/cluster/client/worker_cache.h"
#include "launcher/cluster/lead/course.h"
#include "launcher/cluster/lead/private.h"
#include "launcher/cluster/submit/offer.h"
#include "launcher/cluster/submit/reap.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/sigpipe.h"

#define SYNC_MS KUBE_CALL_MS
#define FLUSH_MS 10000    /* of a document that is deleted next */
#define END_MS 3600000    /* in a pod: of the job's end, which nobody else knows */
#define GO_MS 5000        /* the same once its pod is to go; less than the pod's grace */
#define DELETE_MS 5000    /* of what is deleted meanwhile */
#define HALF_MADE_MS 3000 /* without a further object: who made the job is not at it any more */
#define OWN_END_MS 5000   /* for pods whose agents end; the kubelet tells it within 2 s */

/* ---- signals and changes ---- */

static void on_signal(void *arg, int signo)
{
    struct lead *lead = arg;
    if (signo == SIGTSTP)
        raise(SIGSTOP);
    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT)
        return;
    if (!lead->stop.cancelled) /* else it is our pod that ends, as part of that */
        lead->stop.signo = signo;
    if (!lead->stop.signal_ms)
        lead->stop.signal_ms = clock_ms();
}

/* `drarun cancel` writes it to the owner. */
static void look_for_cancel(struct lead *lead)
{
    const json_t *metadata = json_object_get(board_owner(lead->board), "metadata");
    const json_t *annotations = json_object_get(metadata, "annotations");
    if (lead->stop.cancelled || !json_object_get(annotations, CANCEL_ANNOTATION))
        return;
    lead->stop.cancelled = true;
    lead->stop.signo = SIGINT;
    log_note("the job is cancelled");
    if (lead->job)
        job_interrupt(lead->job, SIGINT);
}

static void on_changed(void *arg)
{
    struct lead *lead = arg;
    lead->dirty = true;
    pod_group_stir(&lead->group, lead_now());
    if (!lead->board)
        return;
    look_for_cancel(lead);
    if (lead->job)
        lead_look_at_ranks(lead);
}

static void on_lease_lost(void *arg, const struct drarun_error *why)
{
    struct lead *lead = arg;
    if (lead->recorded) /* it is deleted with the rest of the job */
        return;
    lead->stop.lost = *why;
    lead->dirty = true;
    status_writer_leave(lead->writer);
    if (lead->job)
        job_stop(lead->job, why);
}

/* ---- beginning ---- */

static int take_key(struct lead *lead, struct drarun_error *err)
{
    if (lead->options->key)
        lead->key.tls = *lead->options->key;
    else if (getrandom(lead->key.tls.bytes, sizeof lead->key.tls.bytes, 0) !=
             (ssize_t)sizeof lead->key.tls.bytes)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof lead->key.tls.bytes; i++)
        snprintf(lead->key.hex + 2 * i, 3, "%02x", lead->key.tls.bytes[i]);
    return 0;
}

/* The end of a cancelled job is for the launcher that leads it: the others wait for that. */
static bool is_told_to_go(void *arg)
{
    const struct lead *lead = arg;
    return lead->stop.signo && !lead->stop.cancelled;
}

static int make_lease(struct lead *lead, struct drarun_error *err)
{
    const struct lease_owner owner = {.lost = on_lease_lost, .stopped = is_told_to_go, .arg = lead};
    CLEANUP(json_decrefp)
    json_t *manifest = object_new(lead->spec, &lead->render, "coordination.k8s.io/v1", "Lease",
                                  json_string(lead->spec->name), true);
    if (!manifest)
        return error_set(err, ENOMEM, "out of memory");
    int rc = lease_take(lead->cluster, manifest, lead->options->holder, &owner, &lead->lease, err);
    if (rc == -EBUSY)
        lead->stop.lost = *err; /* the other one leads the job, and has its workers */
    return rc == -ECANCELED || rc == -EBUSY ? -EINTR : rc;
}

static bool is_whole(struct lead *lead)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    if (lead->spec->claims == SPEC_CLAIMS_TEMPLATE)
        return worker_cache_attempt_of(board_worker_job(lead->board)) >= lead->render.attempt;
    for (uint32_t i = 0; i < lead->spec->workers; i++)
        if (workers[i].phase == POD_ABSENT || workers[i].claim == CLAIM_ABSENT)
            return false;
    return true;
}

/* A launcher in its pod that is told to go leaves the job to the next one, unless the job has
 * ended; so does one that has lost it. */
static bool is_left_to_others(const struct lead *lead)
{
    return lead->stop.lost.code || (!lead->options->here && lead->stop.signo == SIGTERM &&
                                    !lead->stop.cancelled && !lead->over);
}

/* Nothing of it is deleted here: the next launcher has it as it is. */
static bool stays_as_it_is(struct lead *lead)
{
    return lead->stop.lost.code ||
           (is_left_to_others(lead) && !object_is_suspended(board_launcher_job(lead->board)));
}

/* The client or the controller made the owner; it may have died before it made the rest, which is
 * left to it as long as further objects appear: also where all are deleted next, since what came
 * later would stay. What this pod was started with is there: the Secret and the ConfigMap. */
static int adopt(struct lead *lead, struct drarun_error *err)
{
    int64_t pause = lead->doc ? 0 : HALF_MADE_MS, end = clock_ms() + pause;
    size_t most = 0;
    while (!is_whole(lead) && !stays_as_it_is(lead) && clock_ms() < end) {
        cluster_turn(lead->cluster, end - clock_ms());
        size_t there = board_remains(lead->board, true);
        if (there > most)
            end = clock_ms() + pause;
        most = there > most ? there : most;
    }
    if (lead_is_stopped(lead) || is_whole(lead))
        return 0;
    int rc = board_sync(lead->board, SYNC_MS, err);
    if (rc < 0 || is_whole(lead))
        return rc;
    lead->unmade = true;
    return lead_create(lead, err);
}

static void own(struct lead *lead)
{
    lead->render.owner_uid = lead->owner_uid;
    board_own(lead->board, lead->owner_uid);
    gang_init(&lead->gang, gang_seed(lead->owner_uid, lead->render.attempt), lead_now());
}

/* rc: of what must be known before the job is led. While the API server is away nobody can say who
 * leads it, or how far it is: it is left to the launcher that the Job makes next. */
static int leave_if_away(struct lead *lead, int rc, const struct drarun_error *err)
{
    if (rc == 0 || !kube_may_answer_later(err))
        return rc;
    lead->stop.lost = *err;
    error_prefix(&lead->stop.lost, "the job is left to the next launcher");
    return -EINTR;
}

/* What is there of a job that was led before: a list that has not come yet looks like workers that
 * are gone. */
static int look(struct lead *lead, struct drarun_error *err)
{
    bool led = lead->doc && !lead->inherited.ended;
    return led && !is_left_to_others(lead) ? board_sync(lead->board, SYNC_MS, err) : 0;
}

/* The launcher before had written that it releases the workers of this attempt. It may have been
 * lost before it had deleted them all, or when it had created some of the next. */
static int release_again(struct lead *lead, struct drarun_error *err)
{
    if (lead->gang.phase != GANG_RELEASING || lead_is_stopped(lead))
        return 0;
    return delete_workers(lead->cluster, lead->spec, lead->options->namespace, err);
}

/* The launcher Job is there: nothing of the job is touched before its Lease is ours. */
static int take_over(struct lead *lead, struct drarun_error *err)
{
    lead->owner_uid = strdup(lead->options->owner_uid);
    if (!lead->owner_uid)
        return error_set(err, ENOMEM, "out of memory");
    own(lead);
    int rc = make_lease(lead, err);
    if (rc == 0)
        rc = lead_resume(lead, err);
    if (rc == 0)
        rc = look(lead, err);
    const struct lead_inherited *left = &lead->inherited;
    bool alive = !left->ended && !left->orphaned && !left->releasing;
    if (rc == 0 && alive)
        rc = release_again(lead, err);
    rc = leave_if_away(lead, rc, err);
    bool whole = lead->allocation.checked; /* who is lost of an allocation stays so */
    return rc < 0 || !alive || whole || lead->gang.phase == GANG_RELEASING ? rc : adopt(lead, err);
}

static int make(struct lead *lead, struct drarun_error *err)
{
    int rc = reap_create(lead->cluster, lead->spec, &lead->render, &lead->owner_uid, err);
    if (rc < 0)
        return rc;
    lead->created = true;
    own(lead);
    rc = board_watch_map(lead->board, err);
    if (rc == 0)
        rc = make_lease(lead, err);
    if (rc == 0)
        reap_look(lead->cluster, lead->options->namespace, &lead->left);
    return rc;
}

static int begin(struct lead *lead, struct drarun_error *err)
{
    const struct lead_options *options = lead->options;
    const struct board_owner owner = {.changed = on_changed, .arg = lead};
    if (options->here)
        offer_look(lead->cluster, lead->spec);
    lead->render = (struct render_options){
        .api = lead->cluster->api,
        .agent = lead->cluster->agent.agent[0] ? &lead->cluster->agent : NULL,
        .attempt = 1,
        .namespace = options->namespace,
        .image = options->image,
        .image_volume = lead->cluster->image_volume,
        .delivery = lead->cluster->delivery,
        .pod_groups = lead->cluster->pod_groups,
        .key = lead->key.hex,
        .secret = options->secret ? options->secret : lead->key.secret,
        .here = options->here,
        .keep_s = options->keep_s,
        .owner_uid = options->owner_uid,
    };
    int rc = take_key(lead, err);
    if (rc == 0)
        rc = submit_name_secret(lead->spec->name, lead->key.secret, err);
    if (rc == 0 && (claims_wanted(lead->spec) || claims_named(lead->spec)) && lead->cluster->api)
        rc = facts_new(lead->cluster, &lead->facts, err);
    if (rc == 0 && lead->facts && claims_wanted(lead->spec))
        rc = forecast_new(lead->cluster, lead->spec, options->namespace, &lead->forecast, err);
    if (rc == 0)
        rc = board_new(lead->cluster, lead->spec, options->namespace, true, &owner, &lead->board,
                       err);
    if (rc == 0)
        rc = status_writer_new(lead->cluster, lead->spec->name, options->namespace, &lead->writer,
                               err);
    if (rc < 0)
        return rc;
    return options->owner_uid ? take_over(lead, err) : make(lead, err);
}

/* ---- attempts ---- */

/* What is said while no job engine carries the log. */
static void on_log(void *arg, const struct log_line *line)
{
    struct lead *lead = arg;
    struct buf json = BUF_INIT;
    lead->log.who.attempt = lead->render.attempt;
    log_json_line(&lead->log.who, line, &json);
    lead_write_log(lead, &json);
    buf_done(&json);
}

/* Signals, the log and the status line, which the job engine has to itself while it runs. */
static int catch_signals(struct lead *lead, struct drarun_error *err)
{
    if (lead->options->framed)
        log_divert(on_log, lead);
    if (lead->console.signals && signals_resume(lead->console.signals, err) < 0)
        return -err->code;
    if (!lead->console.signals)
        lead->console.signals = signals_new(lead->cluster->base, on_signal, lead, err);
    if (!lead->console.line && !lead->options->quiet && !lead->options->framed)
        lead->console.line = status_line_new(lead->cluster->base, lead_status_line, lead);
    return lead->console.signals ? 0 : -err->code;
}

/* Before the job goes on after its ranks: a signal that came meanwhile need not come again. */
static int take_back(struct lead *lead, struct drarun_error *err)
{
    int rc = catch_signals(lead, err);
    if (!lead->stop.signo)
        lead->stop.signo = lead->stop.late;
    return rc;
}

static int place_workers(struct lead *lead, struct drarun_error *err)
{
    int rc = lead_place(lead, err);
    status_line_clear(lead->console.line);
    return rc;
}

static int keep_workers(struct lead *lead, struct drarun_error *err)
{
    status_line_clear(lead->console.line);
    int rc = take_back(lead, err);
    return rc == 0 ? lead_keep(lead, err) : rc;
}

static int take_orphans(struct lead *lead, struct drarun_error *err)
{
    int rc = lead_take_orphans(lead, err);
    lead->inherited.orphaned = false;
    return rc;
}

/* If it is stopped, the next launcher does so, by the suspended Job that is there. */
static int queue_again(struct lead *lead, struct drarun_error *err)
{
    error_clear(err);
    int rc = take_back(lead, err);
    if (rc == 0 && lead_is_stopped(lead))
        return -EINTR;
    return rc == 0 ? lead_queue_again(lead, err) : rc;
}

static int restart(struct lead *lead, struct drarun_error *err)
{
    if (!lead->attempt.report)
        lead_end_unrun(lead, err);
    error_clear(err);
    int rc = take_back(lead, err);
    return rc == 0 ? lead_restart(lead, err) : rc;
}

static int (*const phases[COURSE_OVER])(struct lead *lead, struct drarun_error *err) = {
    [COURSE_PLACING] = place_workers,  [COURSE_READING] = lead_read,
    [COURSE_RUNNING] = lead_run_ranks, [COURSE_KEEPING] = keep_workers,
    [COURSE_ORPHANED] = take_orphans,  [COURSE_RELEASING] = lead_next_attempt,
    [COURSE_QUEUEING] = queue_again,   [COURSE_RESTARTING] = restart,
};

static enum course_phase first_phase(const struct lead *lead)
{
    if (lead->inherited.releasing)
        return COURSE_RELEASING;
    if (lead->inherited.orphaned)
        return COURSE_ORPHANED;
    return lead->allocation.checked ? COURSE_KEEPING : COURSE_PLACING;
}

/* rc: of the phase. */
static enum course_event judge(struct lead *lead, enum course_phase phase, int rc,
                               const struct drarun_error *err)
{
    bool checked = lead->allocation.checked;
    bool over = phase == COURSE_KEEPING || phase == COURSE_ORPHANED ||
                (phase == COURSE_RUNNING && !checked);
    if (rc < 0 && course_creates(phase))
        return COURSE_END;
    if (rc == 0 && !over)
        return checked ? COURSE_CHECKED : COURSE_DONE;
    if (lead_is_taken_back(lead, rc, err))
        return COURSE_TAKEN_BACK;
    return lead_may_restart(lead, rc, err) ? COURSE_RESTART : COURSE_END;
}

static int run_course(struct lead *lead, struct drarun_error *err)
{
    enum course_phase phase = first_phase(lead);
    int rc = 0;
    lead_serve_metrics(lead);
    while (phase != COURSE_OVER) {
        rc = phases[phase](lead, err);
        enum course_event event = judge(lead, phase, rc, err);
        const struct course_step *step = course_step_find(phase, event);
        if (!step)
            return error_set(err, EINVAL, "internal error: \"%s\" while %s",
                             course_event_name(event), course_phase_name(phase));
        log_verbose("job %s: %s -> %s (%s)", lead->spec->name, course_phase_name(phase),
                    course_phase_name(step->next), course_event_name(event));
        phase = step->next;
    }
    return rc;
}

/* ---- the end ---- */

/* rc: of the last phase. */
static bool is_interrupted(const struct lead *lead, int rc)
{
    return lead->stop.signo && (rc < 0 || lead->stop.cancelled);
}

/* The first cause counts: an attempt that is over, and that no other one could follow. */
static int status_of(const struct lead *lead, int rc, const struct drarun_error *err)
{
    const struct lead_stop *stop = &lead->stop;
    const json_t *over = json_object_get(lead->attempt.report, "status");
    if (stop->lost.code)
        return error_exit_status(stop->lost.kind);
    if (is_interrupted(lead, rc))
        return 128 + (stop->signo < 0 ? -stop->signo : stop->signo);
    if (rc < 0 && over)
        return (int)json_integer_value(over);
    return rc < 0 ? error_exit_status(err->kind) : lead->status;
}

/* Who follows the job says its cause, of the last line of the log or of the document. */
static bool is_in_record(const struct lead *lead)
{
    return lead->options->framed && lead->owner_uid && !is_left_to_others(lead);
}

/* The last line of the log: before the job's objects are gone, which the user need not await. */
static void say_end(struct lead *lead)
{
    if (lead->options->framed && !lead->told.end)
        lead_say_end(lead);
    lead->told.end = true;
}

/* All but the document, which is there for a while for status, list and describe. */
static int keep(struct lead *lead, struct drarun_error *err)
{
    const char *namespace = lead->options->namespace;
    int rc = delete_workers(lead->cluster, lead->spec, namespace, err);
    return rc < 0 ? rc
                  : expire_keep(lead->cluster, lead->spec->name, namespace, lead->render.secret,
                                lead->spec->ttl_after_finished, err);
}

static bool have_ended(struct lead *lead)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    bool ended = true;
    for (uint32_t i = 0; i < lead->spec->workers; i++)
        ended &= workers[i].phase == POD_ENDED || workers[i].phase == POD_ABSENT;
    return ended;
}

/* The agents of ranks that have succeeded end, and with them their pods; the worker Job is then
 * Kubernetes' to delete (PODS_JOB_TTL_S), whether we live or not. A pod with more containers than
 * the ranks' may stay for them. */
static bool is_left_to_its_ttl(struct lead *lead)
{
    struct drarun_error err = {0};
    int64_t end = clock_ms() + OWN_END_MS;
    if (lead->spec->claims != SPEC_CLAIMS_TEMPLATE || lead->status != 0 || lead->stop.cancelled ||
        board_sync(lead->board, OWN_END_MS, &err) < 0)
        return false;
    while (!have_ended(lead) && clock_ms() < end)
        cluster_turn(lead->cluster, end - clock_ms());
    return have_ended(lead);
}

/* As far as it can be deleted. */
static int delete_all(struct lead *lead, struct drarun_error *err)
{
    struct drarun_error local = {0};
    int silent = lead_delete_silent(lead, err), rc = 0;
    bool own = lead->options->here && lead->created;
    if (own && lead->spec->ttl_after_finished > 0)
        rc = keep(lead, &local);
    else if (own)
        rc = delete_job(lead->cluster, lead->spec->name, lead->options->namespace, true,
                        lead->owner_uid, &local);
    else if (!is_left_to_its_ttl(lead))
        rc = delete_pods_and_claims(lead->cluster, lead->spec, lead->options->namespace, &local);
    if (rc < 0)
        *err = local;
    return rc < 0 ? rc : silent;
}

static void clean_up(struct lead *lead)
{
    struct drarun_error err = {0};
    if (delete_all(lead, &err) < 0)
        log_error("%s; drarun cancel %s deletes what remains of the job", err.text,
                  lead->spec->name);
}

/* Unless it was due while the job waited for its workers. */
static void reap_left(struct lead *lead)
{
    status_line_free(TAKE_PTR(lead->console.line));
    while (lead->left.found && !lead_is_stopped(lead) && clock_ms() < lead->left.due_ms)
        cluster_turn(lead->cluster, lead->left.due_ms - clock_ms());
    while (lead->left.found && !lead_is_stopped(lead))
        reap_next(lead->cluster, &lead->left);
}

/* For writing the job's end. A pod that is to go has its grace for that and for the rest: killed
 * with SIGKILL, its launcher would be taken for one that was lost before the job ended. */
static int64_t end_left_ms(void *arg)
{
    const struct lead *lead = arg;
    int64_t end = lead->end_ms, go = lead->stop.signal_ms + GO_MS;
    if (lead->stop.lost.code)
        return 0;
    return (lead->stop.signal_ms && go < end ? go : end) - clock_ms();
}

static int flush_end(struct lead *lead, int64_t ms, struct drarun_error *err)
{
    lead->end_ms = clock_ms() + ms;
    return status_writer_flush_for(lead->writer, end_left_ms, lead, err);
}

/* Nobody else knows of the end of a job whose launcher has a pod: nobody has read its log either
 * while the API server is away. What holds devices goes meanwhile, as far as it can be deleted, and
 * who follows the log need not wait. */
static int write_end(struct lead *lead, struct drarun_error *err)
{
    struct drarun_error later = {0};
    if (lead->options->here)
        return status_writer_flush(lead->writer, FLUSH_MS, err);
    int rc = flush_end(lead, KUBE_CALL_MS, err);
    if (lead->stop.lost.code || !status_writer_is_behind(lead->writer))
        return rc;
    say_end(lead);
    lead->cluster->delete_ms = DELETE_MS;
    if (delete_all(lead, &later) < 0)
        log_verbose("%s; retrying later", later.text);
    lead->cluster->delete_ms = 0;
    lead->end_ms = clock_ms() + END_MS;
    if (end_left_ms(lead) <= 0 && status_writer_is_behind(lead->writer))
        return rc;
    return flush_end(lead, END_MS, err);
}

/* Another launcher leads the job, which has ended here; or this one's pod is to go. */
static bool is_cut_short(struct lead *lead, int rc, const struct drarun_error *err)
{
    const struct lead_stop *stop = &lead->stop;
    bool unwritten = !lead->options->here && status_writer_is_behind(lead->writer);
    if (stop->lost.code)
        log_error("%s", stop->lost.text);
    else if (rc < 0 && stop->signal_ms && unwritten)
        log_error("the launcher is told to go, and could not write the job's end: %s; drarun "
                  "cancel %s deletes what remains of the job",
                  err->text, lead->spec->name);
    else if (rc < 0)
        log_error("%s", err->text);
    return stop->lost.code || (stop->signal_ms && unwritten);
}

/* Why the last phase failed: the record of an attempt that is over does not have it. */
static void say_failure(const struct lead *lead, const struct drarun_error *err)
{
    if (lead->attempt.report && !is_left_to_others(lead))
        log_error("attempt %u cannot be started: %s; the job ends as attempt %u did",
                  lead->render.attempt + 1, err->text, lead->render.attempt);
    else if (!is_in_record(lead))
        log_error("%s", err->text);
}

/* A job that is stopped between two attempts does not end as the last of them. */
static void take_report(struct lead *lead, int rc, const struct drarun_error *err)
{
    if (lead->attempt.report)
        json_object_set_new(lead->attempt.report, "status", json_integer(lead->status));
    else if (is_interrupted(lead, rc))
        lead->attempt.report = lead_interruption_report(lead);
    else
        lead->attempt.report = lead_failure_report(lead, err);
}

static void finish(struct lead *lead, int rc, const struct drarun_error *err)
{
    struct drarun_error local = {0};
    catch_signals(lead, &local); /* what is to be taken back is */
    lead->status = status_of(lead, rc, err);
    if (rc < 0 && rc != -EINTR)
        say_failure(lead, err);
    if (lead->stop.lost.code)
        log_error("%s", lead->stop.lost.text);
    bool waited = rc == -EINTR && !lead->lease; /* for another launcher, which leads the job */
    if (!lead->owner_uid || (waited && !lead->options->here))
        return;
    if (is_left_to_others(lead)) {
        lead_give_back_suspended(lead);
        status_writer_flush(lead->writer, FLUSH_MS, &local);
        return;
    }
    if (rc < 0)
        take_report(lead, rc, err);
    gang_end(&lead->gang, lead_now());
    const char *result = lead->stop.cancelled ? "cancelled"
                         : lead->status == 0  ? "succeeded"
                                              : "failed";
    lead_event_end(lead, result);
    lead_tell(lead, result);
    lead->over = true;
    if (lead->stop.signal_ms)
        lead->stop.signal_ms = clock_ms();
    rc = write_end(lead, &local);
    if (is_cut_short(lead, rc, &local))
        return;
    lead->recorded = rc == 0;
    say_end(lead);
    clean_up(lead);
}

static void report_end(const struct lead *lead, int rc, const struct drarun_error *err,
                       struct cluster_end *ret_end)
{
    if (lead->stop.lost.code)
        ret_end->err = lead->stop.lost;
    else if (is_interrupted(lead, rc))
        error_kind(&ret_end->err, DRARUN_ERR_INTERRUPTED, ECANCELED, "the job was %s",
                   lead->stop.cancelled ? "cancelled" : "interrupted");
    else if (rc < 0 && !lead->attempt.report)
        ret_end->err = *err;
    else
        ret_end->report = json_incref(lead->attempt.report);
}

static void done(struct lead *lead)
{
    log_divert(NULL, NULL);
    kube_call_cancel(lead->allocation.asking);
    metrics_server_free(lead->metrics);
    status_line_free(lead->console.line);
    signals_free(lead->console.signals);
    lease_free(lead->lease);
    status_writer_free(lead->writer);
    board_free(lead->board);
    facts_free(lead->facts);
    forecast_free(lead->forecast);
    pod_group_done(&lead->group);
    json_decref(lead->domain.claims);
    json_decref(lead->domain.object);
    free(lead->domain.cliques);
    free(lead->domain.rank_order);
    json_decref(lead->attempt.report);
    json_decref(lead->attempt.fabric);
    json_decref(lead->attempt.roles);
    json_decref(lead->doc);
    reap_done(&lead->left);
    strlist_done(&lead->restarts.avoid);
    strlist_done(&lead->restarts.silent);
    free(lead->told.words);
    waiting_told_done(&lead->told.waiting);
    free(lead->owner_uid);
    explicit_bzero(&lead->key.tls, sizeof lead->key.tls);
    explicit_bzero(lead->key.hex, sizeof lead->key.hex);
}

int lead_run(struct cluster *cluster, const struct lead_options *options)
{
    struct lead lead = {
        .cluster = cluster,
        .options = options,
        .spec = options->spec,
        .log.who.job = options->spec->name,
        .created_ms = lead_now(),
    };
    struct drarun_error err = {0};
    struct sigaction old_pipe;
    sigpipe_ignore(&old_pipe); /* the job is led to its end, also if nobody reads of it */
    if (options->framed)
        lead_mark_log(&lead);
    int rc = catch_signals(&lead, &err);
    if (rc == 0)
        rc = begin(&lead, &err);
    if (rc == 0 && !lead.inherited.ended)
        rc = run_course(&lead, &err);
    if (rc < 0 && kube_is_away(&err)) /* who judges nodes by the report must not blame one */
        err.kind = DRARUN_ERR_CLUSTER;
    if (lead.inherited.ended)
        clean_up(&lead);
    else
        finish(&lead, rc, &err);
    if (!is_left_to_others(&lead))
        say_end(&lead);
    if (options->ret_document)
        *options->ret_document = json_incref(lead.doc);
    if (options->ret_end)
        report_end(&lead, rc, &err, options->ret_end);
    if (lead.recorded) /* else the loss of its Lease is still to be told */
        reap_left(&lead);
    done(&lead);
    sigpipe_restore(&old_pipe);
    return is_left_to_others(&lead) ? LEAD_LEFT : lead.status;
}
