/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/outcome/failure_rule.h"
#include "jobs/status/status_doc.h"
#include "launcher/cluster/submit/cancel.h"
#include "launcher/cluster/follow/awaited.h"
#include "launcher/cluster/follow/end.h"
#include "launcher/cluster/follow/launcher.h"
#include "launcher/cluster/follow/log.h"
#include "launcher/cluster/follow/output.h"
#include "launcher/cluster/follow/result.h"
#include "launcher/cluster/follow/state.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cli/verb.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/watch.h"

#define TURN_MS 60000
#define PROGRESS_MS 1000
#define STALL_MS 2000 /* after an interrupt: for how long the output may stay unread */

struct follow {
    struct cluster *cluster;
    struct follow_options options; /* with job, namespace and uid our own */
    follow_ended_fn ended;
    void *arg;
    struct event *look; /* when to look at what there is to do */
    int entered;        /* callbacks of ours on the stack */
    int64_t closing_ms; /* since when nothing more is read and what is queued is written; 0: not */
    bool over;          /* ended has been called */
    bool freed;         /* while entered: the outermost releases it */
    struct follow_state state;
    struct follow_launcher launcher;
    bool given_up; /* it never starts: trouble */
    struct follow_log log;
    struct signals *signals;
    struct follow_output output;
    struct follow_awaited awaited;
    int64_t since_ms;
    bool suspended;            /* the launcher's Job, at the last look */
    int64_t resumed_ms;        /* since when it is no longer; 0: it was not */
    int64_t running_ms;        /* options.running: since when they run and the end of the following
                                * waits for messages alone; 0: it waits for more */
    int signo;                 /* our own */
    bool cancel;               /* the job is to be cancelled */
    struct cancel *cancelling; /* it is being cancelled; NULL: it is not */
    enum follow_end end;       /* of the output, when it was over */
    int64_t progress_ms;       /* when to tell what is awaited; 0: never */
    struct drarun_error trouble; /* why no launcher leads it, or its output cannot be written */
    bool unwritten;              /* that it is */
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

static void on_change(void *arg)
{
    follow_look(arg);
}

/* ---- output ---- */

/* Who was freed by its own callback gets nothing more. */
static int put_line(void *arg, uint32_t rank, bool is_stderr, const char *data, size_t length)
{
    const struct follow *f = arg;
    return f->freed ? 1 : f->options.put(f->options.arg, rank, is_stderr, data, length);
}

static void on_full(void *arg, bool full)
{
    struct follow *f = arg;
    follow_log_hold(&f->log, full);
    follow_look(f);
}

static void on_write(void *arg)
{
    const struct follow *f = arg;
    status_line_clear(f->output.line);
}

static void on_write_failed(void *arg, const struct drarun_error *err)
{
    struct follow *f = arg;
    if (f->trouble.code)
        return;
    if (f->state.ended_ms)
        f->trouble = *err;
    else
        error_kind(&f->trouble, err->kind, err->code,
                   "%s; job %s goes on, and drarun logs %s shows its output", err->text,
                   f->options.job, f->options.job);
    f->unwritten = true;
    follow_look(f);
}

static void take_streams(struct follow *f)
{
    const struct std_streams_owner owner = {.full = on_full,
                                            .before = on_write,
                                            .idle = on_change,
                                            .failed = on_write_failed,
                                            .arg = f};
    if (!f->options.streams)
        return;
    std_streams_set_owner(f->options.streams, &owner);
    follow_log_hold(&f->log, std_streams_is_full(f->options.streams));
}

static bool has_dropped(const struct follow *f)
{
    return f->options.streams && std_streams_has_dropped(f->options.streams);
}

static bool is_written(const struct follow *f)
{
    return !f->options.streams || std_streams_is_idle(f->options.streams);
}

/* ---- the launcher's log ---- */

static void on_log_data(const char *bytes, size_t length, void *arg)
{
    struct follow *f = arg;
    enter(f);
    follow_log_read(&f->log, bytes, length);
    follow_look(f);
    leave(f);
}

static void on_log_ended(const struct drarun_error *err, void *arg)
{
    struct follow *f = arg;
    enter(f);
    follow_log_end(&f->log, err);
    follow_look(f);
    leave(f);
}

static void on_chosen(void *arg)
{
    struct follow *f = arg;
    follow_log_change(&f->log);
}

/* ---- the course of it ---- */

static int64_t last_sign_ms(const struct follow *f)
{
    const struct follow_state *s = &f->state;
    int64_t first = s->ended_ms      ? s->ended_ms
                    : s->failed.code ? s->failed_ms
                    : f->running_ms  ? f->running_ms
                                     : f->since_ms;
    if (f->log.held) /* it is we who do not listen */
        return clock_ms();
    return f->log.heard_ms > first ? f->log.heard_ms : first;
}

static struct follow_end_facts end_facts(const struct follow *f, int64_t now)
{
    const struct follow_state *s = &f->state;
    /* its Job fails after its pod, but the watch of pods may be behind that of Jobs */
    bool pod_may_come = s->failed.code && now - s->failed_ms < FOLLOW_END_GONE_MS;
    return (struct follow_end_facts){
        .leader = follow_state_leader(&f->state),
        .pod = f->log.pod,
        .recorded = f->log.recorded,
        .closed = follow_log_is_whole(&f->log),
        .open = f->log.stream != NULL,
        .pods_known = follow_state_knows_logs(&f->state),
        .leader_is_there = follow_state_leader_is_there(&f->state),
        .pod_is_coming = s->pod.coming || pod_may_come,
        .refused = f->log.refused,
        .silent_ms = now - last_sign_ms(f),
    };
}

static enum follow_end judge_output(const struct follow *f, int64_t now)
{
    const struct follow_end_facts facts = end_facts(f, now);
    return f->options.output ? follow_end_judge(&facts) : FOLLOW_END_READ;
}

/* What the launcher has said until the ranks ran: its document, which says how much that is, comes
 * another way than its log. A launcher of an older release does not say it. */
static enum follow_end judge_messages(const struct follow *f, int64_t now)
{
    uint64_t lines = follow_state_lines(&f->state, follow_state_leader(&f->state));
    struct follow_end_facts facts = end_facts(f, now);
    facts.closed |= f->log.lines >= lines;
    if (!f->options.output || lines == 0)
        return FOLLOW_END_READ;
    return f->log.err.code && facts.silent_ms >= FOLLOW_END_GONE_MS ? FOLLOW_END_LOST
                                                                    : follow_end_judge(&facts);
}

/* The launcher Job has failed, and its launcher has told of no end: neither in its document nor in
 * its log, which may have come to its end later than the Job. */
static bool has_no_launcher(const struct follow *f)
{
    const struct follow_state *s = &f->state;
    int64_t now = clock_ms();
    bool read =
        judge_output(f, now) != FOLLOW_END_AWAITED || now - last_sign_ms(f) >= FOLLOW_END_GONE_MS;
    return s->failed.code && !s->ended_ms && (s->gone || (s->last_word && read));
}

/* Why it ends before the job; code 0: it does not. */
static const struct drarun_error *trouble_of(const struct follow *f)
{
    if (f->options.once && f->log.refused)
        return &f->log.err;
    if (f->trouble.code)
        return &f->trouble;
    return !f->state.trouble.code && has_no_launcher(f) ? &f->state.failed : &f->state.trouble;
}

static void say_cancelling(const struct follow *f)
{
    log_note("cancelling %s; interrupt again to leave it at once", f->options.job);
}

static void on_signal(void *arg, int signo)
{
    struct follow *f = arg;
    if (signo == SIGTSTP)
        raise(SIGSTOP);
    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT)
        return;
    bool again = f->signo != 0;
    if (again && f->options.by_program)
        return;
    f->signo = signo;
    follow_look(f);
    if (!f->options.cancel || again || (f->closing_ms && !f->cancelling))
        return;
    f->signo = -signo; /* what follows is the job's own end */
    if (f->cancelling) /* since nobody leads it */
        say_cancelling(f);
    else
        f->cancel = true;
}

static void on_cancelled(int rc, const struct drarun_error *err, void *arg)
{
    struct follow *f = arg;
    f->cancelling = NULL;
    if (rc < 0) {
        log_error("%s", err->text);
        f->signo = abs(f->signo);
    }
    follow_look(f);
}

/* Beside what comes from the job meanwhile. */
static void start_cancelling(struct follow *f)
{
    struct drarun_error err = {0};
    int rc = cancel_start(f->cluster, f->options.job, f->options.namespace, on_cancelled, f,
                          &f->cancelling, &err);
    if (rc < 0)
        on_cancelled(rc, &err, f);
}

static void cancel(struct follow *f)
{
    f->cancel = false;
    say_cancelling(f);
    start_cancelling(f);
}

/* ---- its launcher ---- */

static void say_of_launcher(void *arg, const char *text)
{
    struct follow *f = arg;
    if (f->options.quiet)
        return;
    log_note("%s", text);
}

/* Whose job it is has the spec's patience with it; others wait as long as they like. */
static bool read_limits(const struct follow *f, struct spec_timeouts *ret_timeouts, bool *ret_last)
{
    uint32_t used[FAILURE_COUNTS] = {0};
    struct job_spec spec;
    const json_t *map = follow_state_map(&f->state);
    if (!f->options.cancel || !map || job_map_spec(map, &spec, NULL) < 0)
        return false;
    *ret_timeouts = spec.timeouts;
    status_doc_counts(f->state.doc, &used[FAILURE_COUNT_RESTARTS],
                      &used[FAILURE_COUNT_INFRASTRUCTURE]);
    *ret_last = failure_launcher_is_last(&spec, used);
    job_spec_done(&spec);
    return true;
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

/* Since when the launcher may start: not while a user or a queue suspends its Job, and not before
 * that is known. 0: not yet. */
static int64_t launcher_since(struct follow *f, int64_t now)
{
    bool suspended = follow_state_is_suspended(&f->state);
    if (f->suspended && !suspended)
        f->resumed_ms = now;
    f->suspended = suspended;
    if (suspended || !follow_state_has_job(&f->state))
        return 0;
    return f->resumed_ms ? f->resumed_ms : f->since_ms;
}

/* Where no status line does; a job that is being cancelled is awaited for its end. */
static bool says_waiting(const struct follow *f)
{
    return f->options.streams && !f->options.quiet && !f->options.once && !f->output.line &&
           !f->signo;
}

/* Returns when to look again; 0: when something has changed. */
static int64_t look_for_launcher(struct follow *f, int64_t now)
{
    struct spec_timeouts timeouts;
    bool last = false;
    int64_t again_ms = 0;
    if (f->state.ended_ms || f->state.failed.code || f->options.once || trouble_of(f)->code)
        return 0;
    bool own = read_limits(f, &timeouts, &last);
    if (follow_state_has_launcher(&f->state))
        return look_whether_it_answers(f, last, now);
    int64_t since_ms = launcher_since(f, now);
    if (since_ms == 0)
        return 0;
    f->launcher.tells_all = says_waiting(f);
    if (follow_launcher_starts(&f->launcher, own ? &timeouts : NULL, since_ms, now, &again_ms,
                               &f->trouble) < 0)
        f->given_up = true;
    return again_ms;
}

static void on_status_line(void *arg, struct buf *text)
{
    struct follow *f = arg;
    struct buf words = BUF_INIT;
    if (f->closing_ms && is_written(f))
        return;
    if (f->closing_ms) {
        buf_printf(text, "drarun: waiting %" PRId64 " s for someone to read our output",
                   (clock_ms() - f->closing_ms) / 1000);
        return;
    }
    follow_awaited_words(&f->awaited, &words);
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
    follow_awaited_words(&f->awaited, &text);
    if (text.data)
        f->options.progress(f->options.arg, text.data);
    buf_done(&text);
}

/* With `once` nobody waits for what the log of a job that goes on may get. */
static bool is_as_it_is(const struct follow *f, int64_t now)
{
    bool known = follow_state_knows_logs(&f->state);
    bool no_log = known && !f->log.pod && !f->state.pod.coming;
    bool lost = f->state.gone && f->log.err.code;
    bool silent = now - last_sign_ms(f) >= FOLLOW_END_SILENT_MS;
    return !f->state.ended_ms && (f->log.closed || no_log || lost || silent);
}

/* A job that is being cancelled, or is suspended again, is followed on. */
static void look_whether_it_runs(struct follow *f, int64_t now)
{
    bool runs = f->options.running && !f->signo && follow_state_is_running(&f->state);
    if (!runs)
        f->running_ms = 0;
    else if (!f->running_ms)
        f->running_ms = now;
}

/* The ranks run, which is all that is awaited. */
static bool is_up(const struct follow *f, int64_t now)
{
    if (!f->running_ms)
        return false;
    enum follow_end messages = judge_messages(f, now);
    if (messages == FOLLOW_END_LOST && !f->log.refused) /* that was said */
        log_note("messages of the launcher are missing: the log of %s was not read%s%s; drarun "
                 "logs %s shows them",
                 follow_state_leader(&f->state), f->log.err.code ? ": " : "", f->log.err.text,
                 f->options.job);
    return messages != FOLLOW_END_AWAITED;
}

static bool is_left(const struct follow *f)
{
    return f->signo > 0 || f->output.refused || is_stopped(f);
}

/* What is being deleted goes in steps, of which the job's end may be the first. */
static bool awaits_cancelling(const struct follow *f)
{
    return f->cancelling && !is_left(f);
}

/* 1: it is over. */
static bool is_over(struct follow *f)
{
    int64_t now = clock_ms();
    if (awaits_cancelling(f))
        return false;
    if (is_up(f, now)) {
        *f->options.running = true;
        return true;
    }
    bool gone = follow_state_is_gone(&f->state);
    f->end = judge_output(f, now);
    if (f->state.ended_ms && (f->end != FOLLOW_END_AWAITED || has_dropped(f)))
        return true;
    if (f->options.once && is_as_it_is(f, now))
        return true;
    return (gone && !f->state.ended_ms && !f->options.once) || trouble_of(f)->code || is_left(f) ||
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
    follow_state_choose(&f->state);
    look_whether_it_runs(f, now);
    int64_t log_ms = follow_log_do_due(&f->log, now);
    if (f->progress_ms && now >= f->progress_ms)
        tell_progress(f, now);
    *ret_until = now + TURN_MS;
    int64_t launcher_ms = look_for_launcher(f, now);
    if (launcher_ms)
        sooner(ret_until, launcher_ms);
    int64_t waiting_ms = says_waiting(f) ? follow_awaited_say(&f->awaited, f->since_ms, now) : 0;
    if (waiting_ms)
        sooner(ret_until, waiting_ms);
    if (log_ms)
        sooner(ret_until, log_ms);
    if (f->progress_ms)
        sooner(ret_until, f->progress_ms);
    int64_t end_ms = follow_end_next_ms(now - last_sign_ms(f));
    if (end_ms && (f->state.ended_ms || f->state.failed.code || f->options.once || f->running_ms))
        sooner(ret_until, now + end_ms);
    if (f->options.timeout_ms)
        sooner(ret_until, f->since_ms + f->options.timeout_ms);
    if (f->cancel && !f->cancelling)
        cancel(f);
}

/* Nobody leads the job any more: its workers would keep their devices. */
static bool gives_up(const struct follow *f)
{
    bool no_launcher = trouble_of(f) == &f->state.failed;
    return f->options.cancel && (f->given_up || no_launcher) && !is_left(f);
}

static void stop_reading(struct follow *f)
{
    f->closing_ms = clock_ms();
    follow_log_stop(&f->log);
    follow_output_end(&f->output);
    if (gives_up(f))
        start_cancelling(f);
}

/* Who cancels a job waits for its end, and no longer for a reader. */
static void limit_writing(const struct follow *f)
{
    struct std_streams *streams = f->options.streams;
    if (f->closing_ms && is_left(f))
        std_streams_discard(streams);
    else if (f->signo < 0 && (f->state.ended_ms || f->closing_ms))
        std_streams_limit(streams, STALL_MS);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct follow *f = arg;
    int64_t until = 0;
    (void)fd, (void)what;
    if (f->over)
        return;
    enter(f);
    if (!f->closing_ms)
        do_due(f, &until);
    if (!f->closing_ms && !f->freed && is_over(f))
        stop_reading(f);
    if (f->options.streams)
        limit_writing(f);
    f->over = f->closing_ms && is_written(f) && !awaits_cancelling(f);
    int64_t left = until - clock_ms();
    struct timeval after = timeval_from_ms(left > 0 ? left : 0);
    if (f->over)
        f->ended(f->arg);
    else if (!f->freed && !f->closing_ms) /* the streams, or a signal, look again */
        event_add(f->look, &after);
    leave(f);
}

int follow_result(const struct follow *f, int *ret_status, struct drarun_error *err)
{
    const char *leader = follow_state_leader(&f->state);
    bool lost = has_dropped(f) || f->unwritten;
    const struct follow_result_facts facts = {
        .job = f->options.job,
        .once = f->options.once,
        .runs = f->options.running && *f->options.running,
        .ended = f->state.ended_ms != 0,
        .gone = f->state.gone,
        .interrupted = is_left(f) || has_dropped(f),
        .half_read = f->log.pod && !f->log.closed,
        .exit_status = f->state.exit_status,
        .signo = f->signo,
        .end = lost ? FOLLOW_END_LOST : f->end,
        .timeout_ms = f->options.timeout_ms,
        .trouble = *trouble_of(f),
        .log_err = f->log.err,
        .leader = leader,
        .leader_is_gone =
            leader && kube_watch_synced(f->state.pods) && !follow_state_leader_is_there(&f->state),
        .cause = follow_state_cause(&f->state),
    };
    return follow_result_judge(&facts, ret_status, err);
}

static void release(struct follow *f)
{
    if (f->options.streams)
        std_streams_set_owner(f->options.streams, NULL);
    cancel_free(f->cancelling);
    follow_output_done(&f->output);
    signals_free(f->signals);
    follow_log_done(&f->log);
    follow_state_done(&f->state);
    if (f->look)
        event_free(f->look);
    follow_awaited_done(&f->awaited);
    follow_launcher_done(&f->launcher);
    free(unconst(f->options.job));
    free(unconst(f->options.namespace));
    free(unconst(f->options.uid));
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

/* By the API server's clock, once it has answered: nodes write the times of a log, and those of a
 * cluster agree, while this machine may be anybody's. 0: all. */
static int64_t oldest_wanted(const struct follow *f, const struct follow_options *options)
{
    int64_t now = kube_client_now(f->cluster->client);
    if (!options->last_ms)
        return 0;
    return (now ? now : lead_now()) - (clock_ms() - f->since_ms) - options->last_ms;
}

static int set_up(struct follow *f, const struct follow_options *options, struct drarun_error *err)
{
    static const struct kube_stream_events log_events = {.data = on_log_data,
                                                         .ended = on_log_ended};
    struct event_base *base = f->cluster->base;
    f->output = (struct follow_output){.options = &f->options,
                                       .put = options->put ? put_line : NULL,
                                       .after_ms = oldest_wanted(f, options),
                                       .arg = f};
    f->log = (struct follow_log){
        .client = f->cluster->client,
        .state = &f->state,
        .output = &f->output,
        .once = options->once,
        .events = &log_events,
        .arg = f,
    };
    follow_log_init(&f->log);
    f->look = event_new(base, -1, 0, on_look, f);
    if (copy_options(f, options) < 0 || !f->look || follow_output_init(&f->output) < 0)
        return error_set(err, ENOMEM, "out of memory");
    f->state = (struct follow_state){
        .job = f->options.job,
        .namespace = f->options.namespace,
        .uid = f->options.uid,
        .choose = options->output,
        .owner = {.changed = on_change, .chosen = on_chosen, .arg = f},
    };
    if (options->progress)
        f->progress_ms = f->since_ms + PROGRESS_MS;
    if (f->signals)
        signals_redirect(f->signals, on_signal, f);
    else if (options->streams && !(f->signals = signals_new(base, on_signal, f, err)))
        return err->code ? -err->code : -ENOMEM;
    if (options->signo)
        on_signal(f, options->signo);
    f->launcher = (struct follow_launcher){.client = f->cluster->client,
                                           .pod = &f->state.pod,
                                           .changed = on_change,
                                           .say = say_of_launcher,
                                           .arg = f};
    int rc = follow_state_watch(&f->state, f->cluster->client, err);
    if (rc == 0)
        take_streams(f);
    if (rc == 0 && options->streams && !options->quiet)
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
    f->awaited = (struct follow_awaited){
        .state = &f->state,
        .launcher = &f->launcher,
        .running_ms = &f->running_ms,
    };
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

static int run_until_end(struct cluster *cluster, const struct follow_options *options,
                         int *ret_status, struct drarun_error *err)
{
    struct follow *f = NULL;
    int rc = follow_new(cluster, options, on_ended, NULL, &f, err);
    if (rc < 0)
        return rc;
    while (!f->over && cluster_loop(cluster) == 0)
        ;
    rc = f->over ? follow_result(f, ret_status, err)
                 : error_set(err, EINVAL, "the event loop ended before the job");
    if (rc == 0 && options->ret_end)
        options->ret_end->report =
            json_pack("{s:i, s:O?}", "status", *ret_status, "cause", follow_state_cause(&f->state));
    follow_free(f);
    return rc;
}

/* Says what cannot be had; returns the exit status. status: of follow_result. */
static int say_failure(const struct drarun_error *err, int status)
{
    if (err->code == ETIMEDOUT && err->kind == DRARUN_ERR_TIMEOUT)
        log_error("%s (--timeout)", err->text);
    else if (err->code != ECANCELED)
        log_error("%s", err->text);
    if (err->kind == DRARUN_ERR_INTERRUPTED)
        return status;
    return err->kind == DRARUN_ERR_USAGE ? verb_exit_status(err) : error_exit_status(err->kind);
}

int follow_in_foreground(struct cluster *cluster, const struct follow_options *options,
                         follow_until_fn until_end)
{
    struct follow_options foreground = *options;
    struct drarun_error err = {0};
    int status = 0, rc;
    foreground.streams = std_streams_new(cluster->base, options->reader);
    if (foreground.streams) {
        rc = until_end(cluster, &foreground, &status, &err);
    } else {
        signals_free(options->signals);
        rc = error_set(&err, ENOMEM, "out of memory");
    }
    if (rc < 0 && options->ret_end)
        options->ret_end->err = err;
    if (rc < 0)
        status = say_failure(&err, status);
    std_streams_end(foreground.streams);
    return status;
}

int follow_job(struct cluster *cluster, const struct follow_options *options)
{
    return follow_in_foreground(cluster, options, run_until_end);
}
