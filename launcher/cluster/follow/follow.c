/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/outcome/failure_rule.h"
#include "jobs/status/status_doc.h"
#include "jobs/gang/waiting.h"
#include "launcher/cluster/submit/cancel.h"
#include "launcher/cluster/follow/end.h"
#include "launcher/cluster/follow/launcher.h"
#include "launcher/cluster/follow/output.h"
#include "launcher/cluster/follow/pod.h"
#include "launcher/cluster/follow/result.h"
#include "launcher/streams/frames.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/follow/log_place.h"
#include "launcher/cli/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/stream.h"
#include "lib/kube/watch.h"

#define TURN_MS 60000
#define LOG_AGAIN_MS 500  /* after a log that broke off */
#define LOG_DRAIN_MS 5000 /* drain timeout of a log whose launcher is gone */
#define PROGRESS_MS 1000

struct follow {
    struct cluster *cluster;
    struct follow_options options; /* with job, namespace and uid our own */
    follow_ended_fn ended;
    void *arg;
    struct event *look; /* when to look at what there is to do */
    int entered;        /* callbacks of ours on the stack */
    bool over;          /* ended has been called */
    bool freed;         /* while entered: the outermost releases it */
    struct kube_watch *status, *pods, *jobs;
    struct follow_launcher launcher;
    bool given_up; /* it never starts: trouble */
    struct kube_stream *log;
    struct frames frames;
    struct signals *signals;
    struct follow_output output;
    struct waiting_told waited; /* what it waits for, as it was said without a status line */
    struct follow_pod pod;
    char *from;          /* the pod whose log is read; NULL: none yet */
    uint64_t lines;      /* of its log, with those that are known to be missing */
    struct log_place at; /* up to there it was read */
    bool marked;         /* it has said how long it is */
    bool final;          /* its container had ended when it was opened */
    bool recorded;       /* it has the record `ended` */
    bool eof;            /* its last stream ended in order */
    bool closed;         /* it was read to its end */
    bool refused_log;    /* this user may not read it, which was said */
    int64_t heard_ms;    /* when its last bytes came */
    int64_t again_ms;    /* when to open the log again; 0: not */
    int64_t change_ms;   /* by when the log of another pod is opened instead; 0: it is not */
    struct drarun_error log_err; /* of the last try */
    json_t *doc;                 /* the status document, or NULL */
    char *led_by;     /* whose log has the output, by the record `ended`; NULL: none was read */
    int64_t ended_ms; /* since when it is known that the job ended; 0: it goes on */
    int64_t since_ms;
    int exit_status;
    int signo;           /* our own */
    bool cancel;         /* the job is to be cancelled by the next turn */
    enum follow_end end; /* of the output, when it was over */
    bool gone;           /* the job was deleted */
    int64_t progress_ms; /* when to tell what is awaited; 0: never */
    struct drarun_error trouble;
};

static void release(struct follow *f);

/* Around what may call the owner back, who may free us. */
static void enter(struct follow *f)
{
    f->entered++;
}

static void leave(struct follow *f)
{
    if (--f->entered == 0 && f->freed)
        release(f);
}

/* Something has come about: it is looked at once the callback has returned. */
void follow_look(struct follow *f)
{
    if (!f->over && !f->freed)
        event_active(f->look, EV_TIMEOUT, 0);
}

static bool is_of_job(const struct follow *f, const json_t *object)
{
    return !f->options.uid || kube_is_owned_by(object, f->options.uid);
}

/* ---- output ---- */

/* Who was freed by its own callback gets nothing more. */
static int put_line(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    const struct follow *f = arg;
    return f->freed ? 1 : f->options.put(f->options.arg, rank, is_stderr, data, length);
}

static void on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    struct follow *f = arg;
    f->lines++;
    follow_output_add(&f->output, rank, is_stderr, data, length);
}

static bool on_stamp(void *arg, const char *text, size_t length)
{
    struct follow *f = arg;
    follow_output_stamp(&f->output, text, length);
    return log_place_pass(&f->at, text, length);
}

static void note_end(struct follow *f, int status)
{
    if (f->ended_ms)
        return;
    f->ended_ms = clock_ms();
    f->exit_status = status;
}

#define ROTATED "its node keeps the end of a log alone (the kubelet's containerLogMaxSize)"

/* told: how many lines the launcher had written before this one. */
static void look_for_gap(struct follow *f, const json_t *told)
{
    if (!json_is_integer(told))
        return;
    uint64_t lines = (uint64_t)json_integer_value(told);
    if (lines > f->lines) {
        status_line_clear(f->output.line);
        log_note("%" PRIu64 " lines of the log of %s are missing here: " ROTATED, lines - f->lines,
                 f->from);
    }
    f->lines = lines; /* more of them: something else writes to it, too */
    f->marked = true;
}

/* The log may be ahead of the document. */
static void take_end(struct follow *f, const json_t *record)
{
    const json_t *cause = json_object_get(record, "cause");
    const char *launcher = json_string_value(json_object_get(record, "launcher"));
    note_end(f, (int)json_integer_value(json_object_get(record, "status")));
    f->recorded = true;
    if (launcher && !f->led_by)
        f->led_by = strdup(launcher);
    if (cause && !json_object_get(f->doc, "cause"))
        json_decref(f->doc), f->doc = json_pack("{s:O}", "cause", cause);
}

static void on_own(void *arg, const char *line, size_t length)
{
    struct follow *f = arg;
    CLEANUP(json_decrefp) json_t *json = json_loadb(line, length, 0, NULL);
    const char *event = json_string_value(json_object_get(json, "event"));
    look_for_gap(f, json_object_get(json, "lines"));
    f->lines++;
    if (event && strcmp(event, "ended") == 0)
        take_end(f, json);
    else if (!event)
        follow_output_own(&f->output, json, line, length);
}

/* ---- the launcher's log ---- */

static const json_t *launcher_of(const struct follow *f)
{
    return json_object_get(f->doc, "launcher");
}

/* Who leads the job, or led it to its end; NULL: not known. */
static const char *leader_of(const struct follow *f)
{
    return f->led_by ? f->led_by : json_string_value(json_object_get(launcher_of(f), "pod"));
}

/* How many lines the log has at least, once the job has ended; 0: not known. */
static uint64_t lines_of(const struct follow *f)
{
    const char *leader = leader_of(f);
    json_int_t lines = json_integer_value(json_object_get(launcher_of(f), "lines"));
    return lines > 0 && leader && f->from && strcmp(leader, f->from) == 0 ? (uint64_t)lines : 0;
}

static void on_log_data(const char *bytes, size_t length, void *arg)
{
    struct follow *f = arg;
    f->heard_ms = clock_ms();
    f->log_err = (struct drarun_error){0};
    enter(f);
    frames_add(&f->frames, bytes, length);
    follow_look(f);
    leave(f);
}

/* All that there is was read. */
static void close_log(struct follow *f)
{
    json_t *lines = json_integer((json_int_t)lines_of(f));
    frames_end(&f->frames);
    f->closed = true;
    if (lines_of(f) > f->lines)
        look_for_gap(f, lines);
    else if (!f->marked && (f->lines > 0 || f->final))
        log_note("the beginning of the log of %s is missing: " ROTATED, f->from);
    json_decref(lines);
}

static void note_refusal(struct follow *f, const struct drarun_error *err)
{
    if (f->options.once)
        f->trouble = *err;
    else if (!f->refused_log)
        log_error("%s", err->text);
    f->refused_log = true;
}

/* It has as many lines as the document says, which may come later than the log's end. */
static bool is_long_enough(const struct follow *f)
{
    return f->eof && lines_of(f) > 0 && f->lines >= lines_of(f);
}

/* A log that is followed ends with its container, but for a connection that was closed on the way:
 * it has an end where its container had ended before.
 */
static void on_log_ended(const struct drarun_error *err, void *arg)
{
    struct follow *f = arg;
    f->log = NULL;
    enter(f);
    if (err) {
        log_verbose("the log broke off: %s", err->text);
        f->log_err = *err;
    }
    if (err && err->code == EACCES)
        note_refusal(f, err);
    f->eof |= !err;
    if (!err && (f->options.once || f->final) && !f->recorded)
        close_log(f);
    else if (!f->recorded)
        f->again_ms = clock_ms() + LOG_AGAIN_MS;
    follow_look(f);
    leave(f);
}

static const struct kube_stream_events log_events = {.data = on_log_data, .ended = on_log_ended};

static void open_log(struct follow *f)
{
    struct drarun_error err = {0};
    char since[TIMESTAMP_SIZE];
    const struct kube_log log = {
        .namespace_ = f->options.namespace,
        .pod = f->from,
        .container = "launcher",
        .follow = !f->options.once,
        .tail = -1,
        .timestamps = true,
        .since_time = log_place_resume(&f->at, since),
    };
    f->again_ms = 0;
    f->final = follow_pod_has_ended(&f->pod, f->from);
    frames_done(&f->frames);
    f->frames.line = (struct buf)BUF_INIT;
    if (kube_log_open(f->cluster->client, &log, &log_events, f, &f->log, &err) < 0) {
        log_error("%s", err.text);
        f->log_err = err;
        f->again_ms = clock_ms() + LOG_AGAIN_MS;
    }
}

static struct follow_leader leader(const struct follow *f)
{
    return (struct follow_leader){leader_of(f), f->ended_ms != 0};
}

/* The chosen pod's from now on, from its beginning. */
static void change_log(struct follow *f)
{
    char *from = strdup(f->pod.name);
    f->change_ms = 0;
    if (!from)
        return;
    kube_stream_free(TAKE_PTR(f->log));
    free(f->from);
    f->from = from;
    f->lines = 0;
    f->marked = f->recorded = f->eof = f->closed = false;
    f->at = (struct log_place){0};
    open_log(f);
}

/* What a launcher that is gone has written may still be on its way. */
static void plan_change(struct follow *f)
{
    bool rest = f->log && !follow_pod_is_alive(&f->pod, f->from);
    if (!rest)
        change_log(f);
    else if (!f->change_ms)
        f->change_ms = clock_ms() + LOG_DRAIN_MS;
}

/* An ended job has one log; whose it is the document tells. */
static bool may_choose(const struct follow *f)
{
    return f->options.output && kube_watch_synced(f->status);
}

static void look_for_leader(struct follow *f)
{
    const struct follow_leader now = leader(f);
    if (may_choose(f) && follow_pod_look(&f->pod, &now))
        plan_change(f);
}

static void look_at_pod(const json_t *pod, void *arg)
{
    struct follow *f = arg;
    const struct follow_leader now = leader(f);
    if (may_choose(f) && follow_pod_see(&f->pod, &now, pod))
        plan_change(f);
}

static void on_pod(const json_t *pod, void *arg)
{
    look_at_pod(pod, arg);
    look_for_leader(arg);
    follow_look(arg);
}

static void on_pod_changed(const json_t *pod, const json_t *before, void *arg)
{
    (void)before;
    on_pod(pod, arg);
}

static void on_pod_deleted(const json_t *pod, void *arg)
{
    (void)pod;
    follow_look(arg);
}

/* ---- status ---- */

/* An earlier job's launcher that does not know yet that its job is gone may have written it. */
static bool is_about(const json_t *map, const json_t *doc)
{
    const char *uid = json_string_value(json_object_get(doc, "uid"));
    return !uid || strcmp(uid, kube_uid(map)) == 0 || kube_is_owned_by(map, uid);
}

static void take_status(const json_t *map, void *arg)
{
    struct follow *f = arg;
    json_t *doc = NULL;
    const char *text =
        json_string_value(json_object_get(json_object_get(map, "data"), STATUS_DOC_KEY));
    if (!text || !is_of_job(f, map) || status_doc_parse(text, strlen(text), &doc, NULL) < 0)
        return;
    if (!is_about(map, doc)) {
        json_decref(doc);
        return;
    }
    json_t *cause = json_object_get(f->doc, "cause"); /* the log may be ahead of the document */
    if (cause && !json_object_get(doc, "cause"))
        json_object_set(doc, "cause", cause);
    json_decref(f->doc);
    f->doc = doc;
    if (status_doc_exit(doc) >= 0)
        note_end(f, status_doc_exit(doc));
    look_for_leader(f);
}

static void on_status(const json_t *map, void *arg)
{
    take_status(map, arg);
    follow_look(arg);
}

static void on_status_changed(const json_t *map, const json_t *before, void *arg)
{
    (void)before;
    on_status(map, arg);
}

/* The launcher Job has failed without a word of its launcher: no pod could be made, or it crashed.
 */
static void take_job(const json_t *job, void *arg)
{
    struct follow *f = arg;
    size_t i;
    json_t *condition;
    if (f->options.uid && strcmp(kube_uid(job), f->options.uid) != 0)
        return;
    json_array_foreach(json_object_get(json_object_get(job, "status"), "conditions"), i, condition)
    {
        const char *type = json_string_value(json_object_get(condition, "type"));
        const char *status = json_string_value(json_object_get(condition, "status"));
        const char *message = json_string_value(json_object_get(condition, "message"));
        if (!type || !status || strcmp(type, "Failed") != 0 || strcmp(status, "True") != 0)
            continue;
        if (!f->ended_ms && !f->trouble.code)
            error_kind(&f->trouble, DRARUN_ERR_INFRASTRUCTURE, ECHILD,
                       "the launcher Job %s failed: %s", kube_name(job), message ? message : "?");
    }
}

static void on_job(const json_t *job, void *arg)
{
    take_job(job, arg);
    follow_look(arg);
}

static void on_job_changed(const json_t *job, const json_t *before, void *arg)
{
    (void)before;
    on_job(job, arg);
}

static void on_job_deleted(const json_t *job, void *arg)
{
    struct follow *f = arg;
    f->gone |= !f->options.uid || strcmp(kube_uid(job), f->options.uid) == 0;
    follow_look(f);
}

static void on_status_synced(void *arg)
{
    struct follow *f = arg;
    kube_watch_each(f->pods, look_at_pod, f);
    look_for_leader(f);
    follow_look(f);
}

static void on_synced(void *arg)
{
    follow_look(arg);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    struct follow *f = arg;
    if (err && err->code == EACCES)
        f->trouble = *err;
    else if (err)
        log_note("%s", err->text);
    follow_look(f);
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

static int watch(struct follow *f, const struct kube_resource *resource, const char *name,
                 const char *labels, const struct kube_watch_events *events,
                 struct kube_watch **ret_watch, struct drarun_error *err)
{
    const struct kube_watch_options options = {
        .target = {.resource = resource, .namespace_ = f->options.namespace, .name = name},
        .select.labels = labels,
    };
    return kube_watch_new(f->cluster->client, &options, events, f, ret_watch, err);
}

static int watch_all(struct follow *f, struct drarun_error *err)
{
    char name[JOB_MAP_NAME_SIZE], selector[96];
    job_map_name(f->options.job, name);
    snprintf(selector, sizeof selector, "batch.kubernetes.io/job-name=%s", f->options.job);
    int rc = watch(f, &kube_config_maps, name, NULL, &status_events, &f->status, err);
    if (rc == 0)
        rc = watch(f, &kube_pods, NULL, selector, &pod_events, &f->pods, err);
    if (rc == 0)
        rc = watch(f, &kube_jobs, f->options.job, NULL, &job_events, &f->jobs, err);
    f->pod.namespace = f->options.namespace;
    f->pod.job = f->options.job;
    f->pod.uid = f->options.uid;
    f->pod.pods = f->pods;
    return rc;
}

/* ---- the course of it ---- */

static void on_signal(void *arg, int signo)
{
    struct follow *f = arg;
    if (signo == SIGTSTP)
        raise(SIGSTOP);
    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT)
        return;
    bool again = f->signo != 0;
    f->signo = signo;
    follow_look(f);
    if (!f->options.cancel || again)
        return;
    f->signo = -signo; /* what follows is the job's own end */
    f->cancel = true;
}

static void cancel(struct follow *f)
{
    struct drarun_error err = {0};
    f->cancel = false;
    log_note("cancelling %s; again to leave it at once", f->options.job);
    if (cancel_job(f->cluster, f->options.job, f->options.namespace, &err) == 0)
        return;
    log_error("%s", err.text);
    f->signo = abs(f->signo);
    follow_look(f);
}

static void give_up(struct follow *f)
{
    struct drarun_error err = {0};
    if (cancel_job(f->cluster, f->options.job, f->options.namespace, &err) < 0)
        log_error("%s", err.text);
}

static bool is_running(const struct follow *f)
{
    const char *phase = json_string_value(json_object_get(f->doc, "phase"));
    return !f->ended_ms && phase && strcmp(phase, "running") == 0;
}

static bool is_suspended(const struct follow *f)
{
    const json_t *job = kube_watch_find(f->jobs, f->options.namespace, f->options.job);
    return json_is_true(json_object_get(json_object_get(job, "spec"), "suspend"));
}

/* What is awaited; nothing while the ranks run. */
static void awaited(const struct follow *f, struct buf *text)
{
    const json_t *waiting = json_object_get(f->doc, "waiting");
    const char *words = json_string_value(json_object_get(waiting, "text"));
    bool fails = false;
    if (!f->ended_ms)
        follow_launcher_words(&f->launcher, text);
    if (f->ended_ms || is_running(f) || text->len > 0)
        return;
    cleanup_free char *launcher = follow_pod_waits(&f->pod, &fails);
    if (words && !fails) {
        buf_add_str(text, words);
        return;
    }
    if (launcher && fails && !is_suspended(f)) {
        /* its image or its node first: there may be no room for more */
        const char *why = strncmp(launcher, "pod ", 4) == 0 ? strstr(launcher, ": ") : NULL;
        buf_printf(text, "the launcher does not start: %s", why ? why + 2 : launcher);
        return;
    }
    buf_add_str(text, "waiting for the launcher to start");
    if (is_suspended(f))
        buf_add_str(text, ": the job is suspended (spec.suspend)");
    else if (launcher)
        buf_printf(text, ": %s", launcher);
}

/* ---- its launcher ---- */

static void say_of_launcher(void *arg, const char *text)
{
    struct follow *f = arg;
    if (f->options.quiet)
        return;
    status_line_clear(f->output.line);
    log_note("%s", text);
}

static void on_launcher(void *arg)
{
    follow_look(arg);
}

/* Whose job it is has the spec's patience with it; others wait as long as they like. */
static bool read_limits(const struct follow *f, struct spec_timeouts *ret_timeouts, bool *ret_last)
{
    uint32_t used[FAILURE_COUNTS] = {0};
    struct job_spec spec;
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(f->options.job, name);
    const json_t *map = kube_watch_find(f->status, f->options.namespace, name);
    if (!f->options.cancel || !map || job_map_spec(map, &spec, NULL) < 0)
        return false;
    *ret_timeouts = spec.timeouts;
    status_doc_counts(f->doc, &used[FAILURE_COUNT_RESTARTS], &used[FAILURE_COUNT_INFRASTRUCTURE]);
    *ret_last = failure_launcher_is_last(&spec, used);
    job_spec_done(&spec);
    return true;
}

static bool has_launcher(const struct follow *f)
{
    return f->pod.name || launcher_of(f);
}

/* What was cancelled is cancelled again where its launcher has not seen it. */
static int64_t look_whether_it_answers(struct follow *f, bool last, int64_t now)
{
    int64_t again_ms = 0;
    bool silent = f->launcher.said_silent;
    int rc = follow_launcher_answers(&f->launcher, last, now, &again_ms, &f->trouble);
    f->given_up |= rc < 0;
    f->cancel |= rc == 0 && f->signo < 0 && !silent && f->launcher.said_silent;
    return again_ms;
}

/* Returns when to look again; 0: when something has changed. */
static int64_t look_for_launcher(struct follow *f, int64_t now)
{
    struct spec_timeouts timeouts;
    bool last = false;
    int64_t again_ms = 0;
    if (f->ended_ms || f->options.once || f->trouble.code)
        return 0;
    bool own = read_limits(f, &timeouts, &last);
    if (has_launcher(f))
        return look_whether_it_answers(f, last, now);
    if (follow_launcher_starts(&f->launcher, own ? &timeouts : NULL, f->since_ms, now, &again_ms,
                               &f->trouble) < 0)
        f->given_up = true;
    return again_ms;
}

/* Why it waits, without for how long; NULL: for nothing, or its launcher has told nothing yet. */
static const char *reason_of(const struct follow *f)
{
    const json_t *reasons = json_object_get(json_object_get(f->doc, "waiting"), "reasons");
    if (f->ended_ms || is_running(f))
        return NULL;
    if (is_suspended(f))
        return "suspended";
    return json_string_value(json_object_get(json_array_get(reasons, 0), "text"));
}

/* Where no status line does. What keeps the launcher from starting is said by itself. */
static int64_t say_waiting(struct follow *f, int64_t now)
{
    struct buf text = BUF_INIT;
    int64_t next_ms = 0;
    bool fails = false;
    if (!f->options.foreground || f->options.quiet || f->options.once || f->output.line)
        return 0;
    if (now - f->since_ms < FOLLOW_WAITED_MS)
        return f->since_ms + FOLLOW_WAITED_MS;
    free(follow_pod_waits(&f->pod, &fails));
    if (fails || f->launcher.silent || !waiting_tell(&f->waited, reason_of(f), now, &next_ms))
        return next_ms;
    awaited(f, &text);
    if (text.data)
        log_note("%s", text.data);
    buf_done(&text);
    return 0;
}

static void on_status_line(void *arg, struct buf *text)
{
    struct follow *f = arg;
    struct buf words = BUF_INIT;
    awaited(f, &words);
    if (words.data && clock_ms() - f->since_ms >= FOLLOW_WAITED_MS)
        buf_printf(text, "drarun: %s", words.data);
    buf_done(&words);
}

static bool is_stopped(const struct follow *f)
{
    return f->options.stop && *f->options.stop;
}

static void tell_progress(struct follow *f, int64_t now)
{
    struct buf text = BUF_INIT;
    f->progress_ms = now + PROGRESS_MS;
    awaited(f, &text);
    if (text.data)
        f->options.progress(f->options.arg, text.data);
    buf_done(&text);
}

/* Of the launcher Job; without one, run --here, it is nobody's. */
static bool has_owned_map(const struct follow *f)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(f->options.job, name);
    const json_t *map = kube_watch_find(f->status, f->options.namespace, name);
    return json_object_get(json_object_get(map, "metadata"), "ownerReferences");
}

/* A job that was deleted before it was watched is told of by nobody; its ConfigMap goes later. */
static bool is_deleted(const struct follow *f)
{
    const struct follow_options *o = &f->options;
    if (!kube_watch_synced(f->jobs) || !kube_watch_synced(f->status))
        return false;
    const json_t *job = kube_watch_find(f->jobs, o->namespace, o->job);
    if (o->uid)
        return !job || strcmp(kube_uid(job), o->uid) != 0;
    return !job && (kube_watch_count(f->status) == 0 || has_owned_map(f));
}

static bool is_there(const struct follow *f, const char *pod)
{
    return pod && kube_watch_find(f->pods, f->options.namespace, pod);
}

static int64_t last_sign_ms(const struct follow *f)
{
    int64_t first = f->ended_ms ? f->ended_ms : f->since_ms;
    return f->heard_ms > first ? f->heard_ms : first;
}

static enum follow_end judge_output(const struct follow *f, int64_t now)
{
    const char *leader = leader_of(f);
    const struct follow_end_facts facts = {
        .leader = leader,
        .pod = f->from,
        .recorded = f->recorded,
        .closed = f->closed || is_long_enough(f),
        .open = f->log != NULL,
        .pods_known = kube_watch_synced(f->pods) && kube_watch_synced(f->status),
        .leader_is_there = is_there(f, leader),
        .pod_is_coming = f->pod.coming,
        .refused = f->refused_log,
        .silent_ms = now - last_sign_ms(f),
    };
    return f->options.output ? follow_end_judge(&facts) : FOLLOW_END_READ;
}

/* With `once` nobody waits for what the log of a job that goes on may get. */
static bool is_as_it_is(const struct follow *f, int64_t now)
{
    bool known = kube_watch_synced(f->pods) && kube_watch_synced(f->status);
    bool no_log = known && !f->from && !f->pod.coming;
    bool lost = f->gone && f->log_err.code;
    bool silent = now - last_sign_ms(f) >= FOLLOW_END_SILENT_MS;
    return !f->ended_ms && (f->closed || no_log || lost || silent);
}

/* 1: it is over. */
static bool is_over(struct follow *f)
{
    int64_t now = clock_ms();
    if (f->options.running && is_running(f)) {
        *f->options.running = true;
        return true;
    }
    f->gone |= is_deleted(f);
    f->end = judge_output(f, now);
    if (f->ended_ms && f->end != FOLLOW_END_AWAITED)
        return true;
    if (f->options.once && is_as_it_is(f, now))
        return true;
    return (f->gone && !f->ended_ms && !f->options.once) || f->trouble.code || f->signo > 0 ||
           f->output.refused || is_stopped(f) ||
           (f->options.timeout_ms && now - f->since_ms >= f->options.timeout_ms);
}

static void sooner(int64_t *until, int64_t ms)
{
    if (ms < *until)
        *until = ms;
}

/* Does what is due; *ret_until: when there is more to do. */
static void do_due(struct follow *f, int64_t *ret_until)
{
    int64_t now = clock_ms();
    look_for_leader(f);
    if (f->change_ms && (!f->log || now >= f->change_ms))
        change_log(f);
    else if (f->again_ms && now >= f->again_ms)
        open_log(f);
    if (f->progress_ms && now >= f->progress_ms)
        tell_progress(f, now);
    *ret_until = now + TURN_MS;
    int64_t launcher_ms = look_for_launcher(f, now);
    if (launcher_ms)
        sooner(ret_until, launcher_ms);
    int64_t waiting_ms = say_waiting(f, now);
    if (waiting_ms)
        sooner(ret_until, waiting_ms);
    if (f->again_ms)
        sooner(ret_until, f->again_ms);
    if (f->progress_ms)
        sooner(ret_until, f->progress_ms);
    if (f->change_ms)
        sooner(ret_until, f->change_ms);
    if (f->ended_ms || f->options.once)
        sooner(ret_until, last_sign_ms(f) + FOLLOW_END_SILENT_MS);
    if (f->ended_ms && now < last_sign_ms(f) + FOLLOW_END_GONE_MS)
        sooner(ret_until, last_sign_ms(f) + FOLLOW_END_GONE_MS);
    if (f->options.timeout_ms)
        sooner(ret_until, f->since_ms + f->options.timeout_ms);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct follow *f = arg;
    int64_t until;
    (void)fd, (void)what;
    if (f->over)
        return;
    enter(f);
    do_due(f, &until);
    f->over = !f->freed && is_over(f);
    int64_t left = until - clock_ms();
    struct timeval after = timeval_from_ms(left > 0 ? left : 0);
    if (f->over)
        follow_output_end(&f->output), f->ended(f->arg);
    else if (!f->freed)
        event_add(f->look, &after);
    leave(f);
}

/* Of the log's end, which may be ahead of the document; it is not read where nothing is shown. */
static const json_t *cause_of(const struct follow *f)
{
    const json_t *cause = json_object_get(f->doc, "cause");
    return cause ? cause : json_object_get(json_object_get(f->doc, "report"), "cause");
}

static bool is_left(const struct follow *f)
{
    return f->signo > 0 || f->output.refused || is_stopped(f);
}

int follow_result(const struct follow *f, int *ret_status, struct drarun_error *err)
{
    const char *leader = leader_of(f);
    const struct follow_result_facts facts = {
        .job = f->options.job,
        .once = f->options.once,
        .runs = f->options.running && *f->options.running,
        .ended = f->ended_ms != 0,
        .gone = f->gone,
        .interrupted = is_left(f),
        .half_read = f->from && !f->closed,
        .exit_status = f->exit_status,
        .signo = f->signo,
        .end = f->end,
        .timeout_ms = f->options.timeout_ms,
        .trouble = f->trouble,
        .log_err = f->log_err,
        .leader = leader,
        .leader_is_gone = leader && kube_watch_synced(f->pods) && !is_there(f, leader),
        .cause = cause_of(f),
    };
    return follow_result_judge(&facts, ret_status, err);
}

static void release(struct follow *f)
{
    follow_output_done(&f->output);
    signals_free(f->signals);
    kube_stream_free(f->log);
    kube_watch_free(f->status);
    kube_watch_free(f->pods);
    kube_watch_free(f->jobs);
    if (f->look)
        event_free(f->look);
    frames_done(&f->frames);
    json_decref(f->doc);
    free(f->from);
    free(f->led_by);
    waiting_told_done(&f->waited);
    follow_launcher_done(&f->launcher);
    follow_pod_done(&f->pod);
    free((char *)f->options.job);
    free((char *)f->options.namespace);
    free((char *)f->options.uid);
    free(f);
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    follow->freed = true;
    if (!follow->entered)
        release(follow);
}

/* ---- beginning ---- */

static int copy_options(struct follow *f, const struct follow_options *options)
{
    f->options = *options;
    f->options.job = strdup(options->job);
    f->options.namespace = strdup(options->namespace);
    f->options.uid = options->uid ? strdup(options->uid) : NULL;
    return f->options.job && f->options.namespace && (f->options.uid || !options->uid) ? 0
                                                                                       : -ENOMEM;
}

static int set_up(struct follow *f, const struct follow_options *options, struct drarun_error *err)
{
    const struct frames_owner owner = {
        .output = on_output, .own = on_own, .stamp = on_stamp, .arg = f};
    struct event_base *base = f->cluster->base;
    f->output = (struct follow_output){
        .options = &f->options, .put = options->put ? put_line : NULL, .arg = f};
    frames_init(&f->frames, &owner);
    f->look = event_new(base, -1, 0, on_look, f);
    if (copy_options(f, options) < 0 || !f->look || follow_output_init(&f->output) < 0)
        return error_set(err, ENOMEM, "out of memory");
    if (options->progress)
        f->progress_ms = f->since_ms + PROGRESS_MS;
    if (f->signals)
        signals_redirect(f->signals, on_signal, f);
    else if (options->foreground && !(f->signals = signals_new(base, on_signal, f, err)))
        return err->code ? -err->code : -ENOMEM;
    if (options->signo)
        on_signal(f, options->signo);
    f->launcher = (struct follow_launcher){.client = f->cluster->client,
                                           .pod = &f->pod,
                                           .changed = on_launcher,
                                           .say = say_of_launcher,
                                           .arg = f};
    int rc = watch_all(f, err);
    if (rc == 0 && options->foreground && !options->quiet)
        f->output.line = status_line_new(base, on_status_line, f);
    return rc;
}

int follow_new(struct cluster *cluster, const struct follow_options *options, follow_ended_fn ended,
               void *arg, struct follow **ret_follow, struct drarun_error *err)
{
    struct drarun_error first = {0};
    struct follow *f = calloc(1, sizeof *f);
    if (!f) {
        signals_free(options->signals);
        return error_set(err, ENOMEM, "out of memory");
    }
    *f = (struct follow){
        .cluster = cluster, .ended = ended, .arg = arg, .signals = options->signals};
    f->since_ms = options->since_ms ? options->since_ms : clock_ms();
    int rc = set_up(f, options, &first);
    if (rc < 0) {
        release(f);
        return error_kind(err, first.kind, first.code, "%s", first.text);
    }
    follow_look(f);
    *ret_follow = f;
    return 0;
}

/* ---- in the foreground ---- */

static void on_ended(void *arg)
{
    (void)arg; /* over tells */
}

int follow_until_end(struct cluster *cluster, const struct follow_options *options, int *ret_status,
                     struct drarun_error *err)
{
    struct follow *f = NULL;
    int rc = follow_new(cluster, options, on_ended, NULL, &f, err);
    if (rc < 0)
        return rc;
    while (!f->over && cluster_loop(cluster) == 0)
        if (f->cancel)
            cancel(f);
    if (f->given_up && f->options.cancel)
        give_up(f);
    rc = f->over ? follow_result(f, ret_status, err)
                 : error_set(err, EINVAL, "the event loop ended before the job");
    follow_free(f);
    return rc;
}

int follow_failed(const struct drarun_error *err, int status)
{
    if (err->code == ETIMEDOUT && err->kind == DRARUN_ERR_TIMEOUT)
        log_error("%s (--timeout)", err->text);
    else if (err->code != ECANCELED)
        log_error("%s", err->text);
    if (err->kind == DRARUN_ERR_INTERRUPTED)
        return status;
    return err->kind == DRARUN_ERR_USAGE ? verb_exit_status(err) : error_exit_status(err->kind);
}

int follow_job(struct cluster *cluster, const struct follow_options *options)
{
    struct follow_options foreground = *options;
    struct drarun_error err = {0};
    int status = 0;
    foreground.foreground = true;
    int rc = follow_until_end(cluster, &foreground, &status, &err);
    return rc < 0 ? follow_failed(&err, status) : status;
}
