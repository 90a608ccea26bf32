/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/status_doc.h"
#include "launcher/cluster/cancel.h"
#include "launcher/cluster/follow_pod.h"
#include "launcher/cluster/frames.h"
#include "launcher/cluster/job_map.h"
#include "launcher/cluster/log_place.h"
#include "launcher/signals.h"
#include "launcher/status_line.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"
#include "lib/kube/stream.h"
#include "lib/kube/watch.h"

#define TURN_MS 60000
#define LOG_AFTER_END_MS 5000 /* between the job's end and the end of its log */
#define LOG_AGAIN_MS 500      /* after a log that broke off */
#define WAITED_MS 2000        /* before something is said of waiting */
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
    struct kube_stream *log;
    struct frames frames;
    struct signals *signals;
    struct status_line *line;
    struct follow_pod pod;
    uint64_t lines;      /* of its log, with those that are known to be missing */
    struct log_place at; /* up to there it was read */
    bool marked;         /* it has said how long it is */
    int64_t again_ms;    /* when to open the log again; 0: not */
    json_t *doc;         /* the status document, or NULL */
    int64_t ended_ms;    /* since when it is known that the job ended; 0: it goes on */
    int64_t since_ms;
    int exit_status;
    int signo;           /* our own */
    bool cancel;         /* the job is to be cancelled by the next turn */
    bool log_end;        /* all of the log was read */
    bool gone;           /* the job was deleted */
    bool refused;        /* who gets the output wants no more */
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

static void write_out(int fd, const char *data, size_t length)
{
    if (fd_write_all(fd, data, length) == -EPIPE && fd == STDOUT_FILENO)
        signal(SIGPIPE, SIG_DFL), raise(SIGPIPE);
}

static void on_output(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    struct follow *f = arg;
    char label[24];
    f->lines++;
    if (f->options.rank >= 0 && rank != (uint32_t)f->options.rank)
        return;
    if (f->options.put && !f->refused && !f->freed)
        f->refused = f->options.put(f->options.arg, rank, is_stderr, data, length) != 0;
    if (!f->options.foreground)
        return;
    status_line_clear(f->line);
    int fd = is_stderr ? STDERR_FILENO : STDOUT_FILENO;
    if (f->options.label)
        write_out(fd, label, (size_t)snprintf(label, sizeof label, "[%u] ", rank));
    write_out(fd, data, length);
}

static void note_end(struct follow *f, int status)
{
    if (f->ended_ms)
        return;
    f->ended_ms = clock_ms();
    f->exit_status = status;
}

static void show_own(struct follow *f, const json_t *json, const char *line, size_t length)
{
    const char *text = json_string_value(json_object_get(json, "text"));
    if (f->options.quiet || f->options.rank >= 0)
        return;
    status_line_clear(f->line);
    if (text)
        log_note("%s", text);
    else if (!json)
        log_note("%.*s", length > 900 ? 900 : (int)length, line);
}

#define ROTATED "its node keeps the end of a log alone (the kubelet's containerLogMaxSize)"

/* told: how many lines the launcher had written before this one. */
static void look_for_gap(struct follow *f, const json_t *told)
{
    if (!json_is_integer(told))
        return;
    uint64_t lines = (uint64_t)json_integer_value(told);
    if (lines > f->lines) {
        status_line_clear(f->line);
        log_note("%" PRIu64 " lines of the log of %s are missing here: " ROTATED, lines - f->lines,
                 f->pod.name);
    }
    f->lines = lines; /* more of them: something else writes to it, too */
    f->marked = true;
}

static bool on_stamp(void *arg, const char *text, size_t length)
{
    return log_place_pass(&((struct follow *)arg)->at, text, length);
}

static void on_own(void *arg, const char *line, size_t length)
{
    struct follow *f = arg;
    CLEANUP(json_decrefp) json_t *json = json_loadb(line, length, 0, NULL);
    const char *event = json_string_value(json_object_get(json, "event"));
    look_for_gap(f, json_object_get(json, "lines"));
    f->lines++;
    if (event && strcmp(event, "ended") == 0) {
        const json_t *cause = json_object_get(json, "cause");
        note_end(f, (int)json_integer_value(json_object_get(json, "status")));
        f->log_end = true;
        if (cause && !json_object_get(f->doc, "cause"))
            json_decref(f->doc), f->doc = json_pack("{s:O}", "cause", cause);
        return;
    }
    if (!event)
        show_own(f, json, line, length);
}

/* ---- the launcher's log ---- */

static void on_log_data(const char *bytes, size_t length, void *arg)
{
    struct follow *f = arg;
    enter(f);
    frames_add(&f->frames, bytes, length);
    follow_look(f);
    leave(f);
}

static void on_log_ended(const struct drarun_error *err, void *arg)
{
    struct follow *f = arg;
    f->log = NULL;
    enter(f);
    if (err)
        log_verbose("the log broke off: %s", err->text);
    if (!err && (f->options.once || f->ended_ms)) {
        frames_end(&f->frames);
        f->log_end = true;
        if (f->lines > 0 && !f->marked)
            log_note("the beginning of the log of %s is missing: " ROTATED, f->pod.name);
    } else if (!f->log_end) {
        f->again_ms = clock_ms() + LOG_AGAIN_MS;
    }
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
        .pod = f->pod.name,
        .container = "launcher",
        .follow = !f->options.once,
        .tail = -1,
        .timestamps = true,
        .since_time = log_place_resume(&f->at, since),
    };
    f->again_ms = 0;
    frames_done(&f->frames);
    f->frames.line = (struct buf)BUF_INIT;
    if (kube_log_open(f->cluster->client, &log, &log_events, f, &f->log, &err) < 0)
        log_error("%s", err.text);
}

/* Whom the status document names. */
static struct follow_leader leader(const struct follow *f)
{
    const json_t *launcher = json_object_get(f->doc, "launcher");
    return (struct follow_leader){json_string_value(json_object_get(launcher, "pod")),
                                  f->ended_ms != 0};
}

/* Another pod's from now on, from its beginning. */
static void change_log(struct follow *f)
{
    kube_stream_free(TAKE_PTR(f->log));
    f->lines = 0;
    f->marked = false;
    f->at = (struct log_place){0};
    open_log(f);
}

static void look_for_leader(struct follow *f)
{
    const struct follow_leader now = leader(f);
    if (f->options.output && follow_pod_look(&f->pod, &now))
        change_log(f);
}

static void look_at_pod(struct follow *f, const json_t *pod)
{
    const struct follow_leader now = leader(f);
    if (f->options.output && follow_pod_see(&f->pod, &now, pod))
        change_log(f);
}

static void on_pod(const json_t *pod, void *arg)
{
    look_at_pod(arg, pod);
    look_for_leader(arg);
    follow_look(arg);
}

static void on_pod_changed(const json_t *pod, const json_t *before, void *arg)
{
    (void)before;
    on_pod(pod, arg);
}

/* ---- status ---- */

static void take_status(const json_t *map, void *arg)
{
    struct follow *f = arg;
    json_t *doc = NULL;
    const char *text =
        json_string_value(json_object_get(json_object_get(map, "data"), STATUS_DOC_KEY));
    if (!text || !is_of_job(f, map) || status_doc_parse(text, strlen(text), &doc, NULL) < 0)
        return;
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

static const struct kube_watch_events status_events = {
    .added = on_status, .changed = on_status_changed, .synced = on_synced, .trouble = on_trouble};
static const struct kube_watch_events pod_events = {
    .added = on_pod, .changed = on_pod_changed, .synced = on_synced, .trouble = on_trouble};
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

static bool is_running(const struct follow *f)
{
    const char *phase = json_string_value(json_object_get(f->doc, "phase"));
    return !f->ended_ms && phase && strcmp(phase, "running") == 0;
}

/* What is awaited; nothing while the ranks run. */
static void awaited(const struct follow *f, struct buf *text)
{
    const json_t *waiting = json_object_get(f->doc, "waiting");
    const char *words = json_string_value(json_object_get(waiting, "text"));
    if (f->ended_ms || is_running(f))
        return;
    buf_add_str(text, words ? words : "waiting for the launcher to start");
}

static void on_status_line(void *arg, struct buf *text)
{
    struct follow *f = arg;
    struct buf words = BUF_INIT;
    awaited(f, &words);
    if (words.data && clock_ms() - f->since_ms >= WAITED_MS)
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

/* A job that was deleted before it was watched is told of by nobody. */
static bool is_deleted(const struct follow *f)
{
    const struct follow_options *o = &f->options;
    if (!o->uid || !kube_watch_synced(f->jobs) || !kube_watch_synced(f->status))
        return false;
    const json_t *job = kube_watch_find(f->jobs, o->namespace, o->job);
    return !job || strcmp(kube_uid(job), o->uid) != 0;
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
    bool no_log = kube_watch_synced(f->pods) && !f->pod.name;
    /* a short job has told its end before the kubelet has told its begin */
    bool read = f->log_end || !f->options.output || (no_log && !f->pod.coming);
    if (f->ended_ms && (read || now - f->ended_ms >= LOG_AFTER_END_MS))
        return true;
    if (f->options.once && (f->log_end || no_log))
        return true;
    return f->gone || f->trouble.code || f->signo > 0 || f->refused || is_stopped(f) ||
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
    if (f->again_ms && now >= f->again_ms)
        open_log(f);
    if (f->progress_ms && now >= f->progress_ms)
        tell_progress(f, now);
    *ret_until = now + TURN_MS;
    if (f->again_ms)
        sooner(ret_until, f->again_ms);
    if (f->progress_ms)
        sooner(ret_until, f->progress_ms);
    if (f->ended_ms)
        sooner(ret_until, f->ended_ms + LOG_AFTER_END_MS);
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
        status_line_clear(f->line), f->ended(f->arg);
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

static void say_cause(const struct follow *f)
{
    const json_t *cause = cause_of(f);
    const char *text = json_string_value(json_object_get(cause, "text"));
    const char *advice = json_string_value(json_object_get(cause, "advice"));
    if (!text || !text[0] || f->exit_status == 0)
        return;
    log_error("%s%s%s", text, advice ? "\n  " : "", advice ? advice : "");
}

int follow_interrupted(const char *job, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED,
                      "job %s: what followed it was interrupted", job);
}

int follow_timed_out(const char *job, int64_t timeout_ms, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_TIMEOUT, ETIMEDOUT, "the job %s has not ended within %g s",
                      job, (double)timeout_ms / 1000);
}

int follow_result(const struct follow *f, int *ret_status, struct drarun_error *err)
{
    const char *job = f->options.job;
    *ret_status = f->ended_ms && !f->options.once ? f->exit_status : 0;
    if (f->options.running && *f->options.running)
        return 0;
    if (f->trouble.code && (f->options.once || !f->ended_ms))
        return error_kind(err, f->trouble.kind, f->trouble.code, "%s", f->trouble.text);
    if (f->ended_ms && !f->options.once)
        say_cause(f);
    if (f->ended_ms || (f->options.once && !f->refused && !is_stopped(f)))
        return 0;
    enum drarun_errkind kind = f->signo ? DRARUN_ERR_INTERRUPTED : DRARUN_ERR_INFRASTRUCTURE;
    *ret_status = f->signo ? 128 + abs(f->signo) : error_exit_status(kind);
    if (f->gone)
        return error_kind(err, kind, ENOENT, "the job %s was deleted", job);
    if (f->signo || f->refused || is_stopped(f))
        return follow_interrupted(job, err);
    return follow_timed_out(job, f->options.timeout_ms, err);
}

static void release(struct follow *f)
{
    status_line_free(f->line);
    signals_free(f->signals);
    kube_stream_free(f->log);
    kube_watch_free(f->status);
    kube_watch_free(f->pods);
    kube_watch_free(f->jobs);
    if (f->look)
        event_free(f->look);
    frames_done(&f->frames);
    json_decref(f->doc);
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
    frames_init(&f->frames, &owner);
    f->look = event_new(base, -1, 0, on_look, f);
    if (copy_options(f, options) < 0 || !f->look)
        return error_set(err, ENOMEM, "out of memory");
    if (options->progress)
        f->progress_ms = f->since_ms + PROGRESS_MS;
    if (options->foreground && !(f->signals = signals_new(base, on_signal, f, err)))
        return err->code ? -err->code : -ENOMEM;
    int rc = watch_all(f, err);
    if (rc == 0 && options->foreground && !options->quiet)
        f->line = status_line_new(base, on_status_line, f);
    return rc;
}

int follow_new(struct cluster *cluster, const struct follow_options *options, follow_ended_fn ended,
               void *arg, struct follow **ret_follow, struct drarun_error *err)
{
    struct drarun_error first = {0};
    struct follow *f = calloc(1, sizeof *f);
    if (!f)
        return error_set(err, ENOMEM, "out of memory");
    *f = (struct follow){.cluster = cluster, .ended = ended, .arg = arg};
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
    return err->kind != DRARUN_ERR_INTERRUPTED ? error_exit_status(err->kind) : status;
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
