/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/trial.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/gang.h"
#include "jobs/gang/pod_state.h"
#include "jobs/outcome/cause.h"
#include "jobs/spec/spec.h"
#include "launcher/files/spec_file.h"
#include "launcher/streams/sink.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/timestamp.h"
#include "lib/bench/runs.h"
#include "lib/child/forked.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define TOO_MUCH                                                                                   \
    "its ranks printed more than 1 MiB to standard output: let them print less, as with "          \
    "NCCL_DEBUG=WARN"
#define STOP_MS 60000    /* from the first signal to the last */
#define UNKNOWN_MS 30000 /* to the next look at a wait that is not known */
#define UNKNOWN_MAX 6    /* looks */

struct trial {
    const struct accept_order *order;
    struct drarun_spec *spec;
    struct forked *process; /* NULL: not started yet, or ended */
    struct event *timer;
    int64_t limit_ms, begin_ms; /* by clock_ms */
    bool is_due;                /* the caller is to decide */
    bool is_stopped, is_late;
    struct trial_wait wait; /* as it was when the time was over */
    unsigned unknown;       /* looks in a row that found no more */
    trial_fn fn;
    void *arg;
};

void trial_free(struct trial *t)
{
    if (!t)
        return;
    forked_free(t->process);
    if (t->timer)
        event_free(t->timer);
    drarun_spec_free(t->spec);
    free(t);
}

/* ---- what it says ---- */

static void give(struct accept_answer *ret, enum accept_outcome outcome, const char *reason)
{
    *ret = (struct accept_answer){.outcome = outcome};
    snprintf(ret->reason, sizeof ret->reason, "%s", reason);
}

/* Errors that devices counted meanwhile: a node with a bad cable may still be fast. */
static void judge_devices(const struct result_faults *faults, double busbw,
                          struct accept_answer *ret)
{
    char reason[ACCEPT_REASON];
    snprintf(reason, sizeof reason, "errors were counted while it ran: %.160s%s",
             faults->rose.count ? faults->rose.items[0] : "",
             faults->rose.count > 1 ? ", and others" : "");
    if (faults->rose.count)
        give(ret, ACCEPT_FAILED, reason);
    else
        give(ret, ACCEPT_MEASURED, "");
    ret->ran = true;
    ret->busbw = busbw;
    snprintf(ret->not_looked, sizeof ret->not_looked, "%s",
             faults->known ? faults->not_looked
                           : "errors of devices: the benchmark's output does not tell of them");
}

/* Wrong data, or less than the benchmark was told to reach; false: the run says neither. */
static bool says_no(const struct result *r, struct accept_answer *ret)
{
    CLEANUP(strlist_done) struct strlist ranks = STRLIST_INIT;
    char reason[ACCEPT_REASON];
    const struct result_row *row;
    const struct result_half *best = result_peak(r, &row);
    if (result_wrong(r) > 0 || r->wrong_rows > 0) {
        result_wrong_ranks(r, RESULT_WRONG_SHOWN, &ranks);
        snprintf(reason, sizeof reason, "its data was wrong%s%.180s%s", ranks.count ? ": " : "",
                 ranks.count ? ranks.items[0] : "", ranks.count > 1 ? ", and others" : "");
    } else if (r->below_least)
        snprintf(reason, sizeof reason,
                 "the average, %.4g GB/s, is below what the benchmark was told to reach",
                 r->average);
    else
        return false;
    give(ret, ACCEPT_FAILED, reason);
    ret->ran = true;
    ret->busbw = best ? best->busbw : 0;
    return true;
}

/* Why the figures of a run do not count; false: they do. */
static bool is_refused(const struct run *run, struct accept_answer *ret)
{
    const struct result *r = &run->result;
    CLEANUP(strlist_done) struct strlist why = STRLIST_INIT;
    char reason[ACCEPT_REASON];
    if (r->stand_in)
        give(ret, ACCEPT_FAILED, "the figures are of a stand-in library and measure nothing");
    else if (says_no(r, ret))
        return true;
    else if (run_is_incomplete(run, &why)) {
        snprintf(reason, sizeof reason, "%s", why.count ? why.items[0] : "it is not complete");
        give(ret, ACCEPT_FAILED, reason);
    } else
        return false;
    return true;
}

/* The one host of a run's ranks, which begin with rank 0; NULL: there are several, or none. */
static const char *only_host(const struct result *r)
{
    return result_rank_zeros(r) == 1 && result_hosts(r) == 1 ? r->ranks[0].host : NULL;
}

/* Ranks of all workers are in one table. */
static bool is_together(const struct result *r, const struct trial_shape *shape)
{
    return result_rank_zeros(r) == 1 && r->rank_count > 1 &&
           (shape->workers < 2 || result_hosts(r) > 1);
}

/* Why a job of several processes was none: nccl-tests without MPI, or with one that found no other
 * process, measures in each process alone, and every one calls itself rank 0. What they write is
 * one run or several, as it comes. A job may measure parts of itself, too: where it failed, what
 * it meant to measure together may be what is missing. */
static bool measured_alone(const struct runs *runs, const struct trial_shape *shape, bool failed,
                           char *why, size_t size)
{
    const char *first = NULL;
    why[0] = '\0';
    for (size_t i = 0; i < runs->count; i++)
        if (is_together(&runs->list[i]->result, shape))
            return false;
    for (size_t i = 0; i < runs->count && !why[0]; i++) {
        const struct result *r = &runs->list[i]->result;
        const char *host = only_host(r);
        size_t zeros = result_rank_zeros(r);
        if (zeros > 1)
            snprintf(why, size, "rank 0 is there %zu times", zeros);
        else if (failed)
            continue;
        else if (first && host && strcmp(first, host) != 0)
            snprintf(why, size, "rank 0 is on %.60s and on %.60s", first, host);
        else if (r->ended && r->rank_count == 1 && shape->ranks > 1)
            snprintf(why, size, "one rank measured, of %u", shape->ranks);
        else if (r->ended && host && shape->workers > 1)
            snprintf(why, size, "all ranks are on %.60s, of %u workers", host, shape->workers);
        first = first ? first : host;
    }
    return why[0];
}

/* What one rank sends to itself is no bus bandwidth, but in collectives with a root. */
static bool has_no_speed(const struct result *r)
{
    const struct result_row *row;
    const struct result_half *best = result_peak(r, &row);
    return r->ended && r->rank_count == 1 && best && best->busbw <= 0;
}

/* What another try, or another node, would not change; 0: nothing. failed: the job did. */
static int check_shape(const struct runs *runs, const struct trial_shape *shape, bool failed,
                       struct drarun_error *fatal)
{
    char why[160];
    if (measured_alone(runs, shape, failed, why, sizeof why))
        return error_kind(fatal, DRARUN_ERR_SPEC, EINVAL,
                          "the job of a test is refused: its processes measured alone, not "
                          "together: %s; nccl-tests must be built with MPI=1, for an MPI that "
                          "drarun starts",
                          why);
    if (shape->floor_alone > 0 && shape->workers == 1 && runs->count > 0 &&
        has_no_speed(&runs->list[runs->count - 1]->result))
        return error_kind(fatal, DRARUN_ERR_USAGE, EINVAL,
                          "--min-alone %g: the bus bandwidth of one rank is 0 on any node: let the "
                          "job have several ranks on a node (ranksPerWorker), or leave --min-alone "
                          "out",
                          shape->floor_alone);
    return 0;
}

/* The best row's bus bandwidth of the last run that was printed; of each the data must be right,
 * and its end there. rc: that of reading them. */
static void judge_figures(const struct runs *runs, int rc, struct accept_answer *ret)
{
    const struct result_row *row;
    for (size_t i = 0; rc == 0 && i < runs->count; i++)
        if (is_refused(runs->list[i], ret))
            return;
    const struct result *result = runs->count ? &runs->list[runs->count - 1]->result : NULL;
    const struct result_half *best = result ? result_peak(result, &row) : NULL;
    if (rc < 0 || !best) {
        give(ret, ACCEPT_FAILED, "the benchmark printed no figure that drarun bench judge reads");
        return;
    }
    judge_devices(&result->faults, best->busbw, ret);
}

static int least(size_t a, int b)
{
    return a < (size_t)b ? (int)a : b;
}

/* The last line of a text that has any, and its length. */
static const char *last_line(const char *text, int *ret_length)
{
    size_t end = text ? strlen(text) : 0, begin;
    while (end > 0 && text[end - 1] == '\n')
        end--;
    for (begin = end; begin > 0 && text[begin - 1] != '\n';)
        begin--;
    *ret_length = (int)(end - begin);
    return text ? text + begin : "";
}

/* "rank 3 on worker 0 (x) exited with status 1 after 5 ms", and the last line that the rank has
 * written. */
static void take_reason(const struct cluster_end *end, char text[ACCEPT_REASON])
{
    const json_t *cause = end->err.code ? NULL : json_object_get(end->report, "cause");
    const char *what =
        end->err.code ? end->err.text : json_string_value(json_object_get(cause, "text"));
    int length;
    const char *word = last_line(json_string_value(json_object_get(cause, "stderr")), &length);
    if (!what)
        snprintf(text, ACCEPT_REASON, "the job ended without a word");
    else
        snprintf(text, ACCEPT_REASON, "%.*s%s%.*s", least(strcspn(what, "\n"), 160), what,
                 length > 0 ? ": " : "", least((size_t)length, 90), word);
}

/* What the benchmark itself found wrong tells more than the status that it ended with. */
static bool judge_results(const struct runs *runs, int rc, struct accept_answer *ret)
{
    for (size_t i = 0; rc == 0 && i < runs->count; i++)
        if (says_no(&runs->list[i]->result, ret))
            return true;
    return false;
}

/* Of a rank: it does not understand its command line, as drarun-bench ends then. */
static bool is_refused_by_rank(int status)
{
    return status == error_exit_status(DRARUN_ERR_USAGE) ||
           status == error_exit_status(DRARUN_ERR_SPEC);
}

/* Of a rank: who ended it had no fault of its node in mind. */
static bool is_ended_by_signal(int status)
{
    return status == 128 + SIGINT || status == 128 + SIGTERM;
}

/* What kept the job from an end of its ranks says something of a node only where a report blames
 * its workers: an error without one is of the API server, of the launcher or its Lease. */
static bool is_no_test(bool ended, int status, const json_t *cause)
{
    enum drarun_errkind kind = cause_reported_error(cause);
    return !ended || kind == DRARUN_ERR_CLUSTER || kind == DRARUN_ERR_CAPACITY ||
           kind == DRARUN_ERR_INTERRUPTED || cause_reported_launcher(cause) ||
           (cause_reported_rank(cause) && is_ended_by_signal(status));
}

int trial_judge(const struct cluster_end *end, const struct trial_shape *shape, const char *out,
                size_t length, struct accept_answer *ret, struct drarun_error *fatal)
{
    bool ended = !end->err.code && end->report;
    int status = (int)json_integer_value(json_object_get(end->report, "status"));
    const json_t *cause = ended ? json_object_get(end->report, "cause") : NULL;
    enum drarun_errkind kind = end->err.code ? end->err.kind : cause_reported_error(cause);
    CLEANUP(runs_done) struct runs runs = {0};
    struct drarun_error unread = {0};
    char why[ACCEPT_REASON];
    take_reason(end, why);
    if (kind == DRARUN_ERR_USAGE || kind == DRARUN_ERR_SPEC ||
        (cause_reported_rank(cause) && is_refused_by_rank(status)))
        return error_kind(fatal, DRARUN_ERR_SPEC, EINVAL, "the job of a test is refused: %s", why);
    if (!(ended && status == 0) && is_no_test(ended, status, cause)) {
        give(ret, ACCEPT_NOT_RUN, why);
        return 0;
    }
    int read = runs_read(out, length, "output", &runs, &unread);
    int rc = read == 0 ? check_shape(&runs, shape, status != 0, fatal) : 0;
    if (rc < 0)
        return rc;
    if (status == 0)
        judge_figures(&runs, read, ret);
    else if (!judge_results(&runs, read, ret))
        give(ret, ACCEPT_FAILED, why);
    ret->refused = ended && kind == DRARUN_ERR_PREFLIGHT;
    return 0;
}

void trial_judge_late(bool printed, const struct trial_wait *wait, int64_t limit_ms,
                      struct accept_answer *ret)
{
    char limit[32], text[ACCEPT_REASON];
    bool pulls = wait->pulls && !printed;
    duration_format(limit_ms, limit, sizeof limit);
    if (pulls)
        snprintf(text, sizeof text, "no rank had printed anything after %s: %.180s", limit,
                 wait->reason);
    else
        snprintf(text, sizeof text, "it had not ended after %s", limit);
    give(ret, pulls ? ACCEPT_NOT_RUN : ACCEPT_FAILED, text);
}

/* It may not have run at all. */
static void judge_no_run(const struct trial *t, struct accept_answer *ret)
{
    char limit[32], text[ACCEPT_REASON];
    duration_format(t->limit_ms, limit, sizeof limit);
    snprintf(text, sizeof text,
             t->wait.not_led ? "its launcher had not started after %s"
                             : "it had not ended after %s, and how long it had waited for room is "
                               "not known",
             limit);
    give(ret, ACCEPT_NOT_RUN, text);
}

/* ---- its time ---- */

static const enum gang_phase waiting_phases[] = {GANG_QUEUED, GANG_PLACING, GANG_RELEASING};

/* attempt: the document, or a line of its history. */
static int64_t waited_ms(const json_t *attempt)
{
    const json_t *timings = json_object_get(attempt, "timings");
    int64_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(waiting_phases); i++)
        sum += json_integer_value(json_object_get(timings, gang_phase_name(waiting_phases[i])));
    return sum;
}

static int64_t total_ms(const json_t *attempt)
{
    int64_t sum = 0;
    for (int phase = GANG_QUEUED; phase < GANG_ENDED; phase++)
        sum += json_integer_value(json_object_get(json_object_get(attempt, "timings"),
                                                  gang_phase_name((enum gang_phase)phase)));
    return sum;
}

static bool time_of(const json_t *attempt, int64_t *ret_ms)
{
    return timestamp_parse(json_string_value(json_object_get(attempt, "updated")), ret_ms);
}

/* Workers that are released and created again are another attempt, too, whose timings go on. Those
 * of a restart start at zero, and sum up to less than the time since the earlier attempt. */
static bool goes_on(const json_t *earlier, const json_t *later)
{
    int64_t from, to;
    return time_of(earlier, &from) && time_of(later, &to) &&
           total_ms(later) > to - from + total_ms(earlier) / 2;
}

/* Of a worker whose image cannot be pulled the line has the reason. */
static bool is_pulling(const json_t *doc)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(json_object_get(doc, "workers"), "lines"), i, line)
    {
        const char *phase = json_string_value(json_object_get(line, "phase"));
        if (phase && strcmp(phase, pod_phase_name(POD_PULLING)) == 0 &&
            !json_object_get(line, "reason"))
            return true;
    }
    return false;
}

void trial_wait_read(const json_t *doc, struct trial_wait *ret)
{
    const char *phase = json_string_value(json_object_get(doc, "phase"));
    const char *reason =
        json_string_value(json_object_get(json_object_get(doc, "waiting"), "text"));
    const json_t *history = json_object_get(doc, "history");
    json_int_t earlier = json_integer_value(json_object_get(doc, "attempt")) - 1;
    const json_t *later = doc;
    size_t i;
    *ret = (struct trial_wait){
        .not_led = !phase, .waited_ms = waited_ms(doc), .pulls = is_pulling(doc)};
    snprintf(ret->reason, sizeof ret->reason, "%s", reason ? reason : "");
    for (i = 0; phase && i < ARRAY_LEN(waiting_phases); i++)
        ret->waits |= strcmp(phase, gang_phase_name(waiting_phases[i])) == 0;
    for (i = json_array_size(history); i-- > 0;) {
        const json_t *attempt = json_array_get(history, i);
        ret->waited_ms += goes_on(attempt, later) ? 0 : waited_ms(attempt);
        later = attempt;
    }
    /* the history of a job that is restarted often lacks the first attempts */
    ret->unknown = earlier > (json_int_t)json_array_size(history);
}

static bool set_timer(struct trial *t, int64_t ms)
{
    struct timeval after = timeval_from_ms(ms);
    return evtimer_add(t->timer, &after) == 0;
}

bool trial_is_due(const struct trial *t)
{
    return t->is_due;
}

int64_t trial_left(const struct trial_wait *wait, int64_t limit_ms, int64_t age_ms,
                   unsigned unknown)
{
    if (wait->not_led)
        return 0;
    if (wait->waits)
        return limit_ms;
    int64_t left = limit_ms - (age_ms - wait->waited_ms);
    if (left > 0)
        return left;
    return wait->unknown && unknown < UNKNOWN_MAX ? UNKNOWN_MS : 0;
}

void trial_go_on(struct trial *t, const struct trial_wait *wait)
{
    t->is_due = false;
    t->unknown = wait->unknown && !wait->waits ? t->unknown + 1 : 0;
    int64_t left = trial_left(wait, t->limit_ms, clock_ms() - t->begin_ms, t->unknown);
    if (left > 0 && set_timer(t, left))
        return;
    t->is_late = true;
    t->wait = *wait;
    trial_stop(t);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    struct trial *t = arg;
    (void)fd, (void)what;
    if (t->is_stopped)
        forked_signal(t->process, SIGKILL);
    else
        t->is_due = true;
}

void trial_stop(struct trial *t)
{
    if (t->is_stopped)
        return;
    t->is_stopped = true;
    t->is_due = false;
    set_timer(t, STOP_MS);
    forked_signal(t->process, SIGTERM);
}

/* ---- its process ---- */

/* What it answers: this, then the report as JSON and the output. It is a copy of the process that
 * reads it. */
struct message {
    struct drarun_error err; /* as in struct cluster_end */
    bool too_much;           /* was printed */
    size_t report, output;   /* bytes */
};

/* By the ranks, to their standard output. */
struct printed {
    struct buf text;
    bool too_much;
};

/* What is longer is not kept, and ends the job as a user would. */
static int on_read(void *arg, const char *data, size_t length, struct buf *shown)
{
    struct printed *printed = arg;
    (void)shown;
    if (printed->too_much)
        return 0;
    buf_add(&printed->text, data, length);
    printed->too_much = printed->text.len > OUTPUT_MAX;
    if (printed->too_much)
        raise(SIGTERM);
    return printed->text.failed ? -ENOMEM : 0;
}

static void on_read_end(void *arg, struct buf *shown)
{
    (void)arg, (void)shown;
}

static void write_message(const struct cluster_end *end, const struct printed *printed, int answer)
{
    struct message message;
    char *report = end->report ? json_dumps(end->report, JSON_COMPACT) : NULL;
    memset(&message, 0, sizeof message); /* what is between the members is written, too */
    message.err = end->err;
    message.too_much = printed->too_much;
    message.report = report ? strlen(report) : 0;
    message.output = printed->text.len;
    fd_write_all(answer, &message, sizeof message);
    fd_write_all(answer, report, message.report);
    fd_write_all(answer, printed->text.data, message.output);
}

/* Of all that it has of ours it uses what is asked for. */
static void run_job(void *arg, int answer)
{
    const struct trial *t = arg;
    struct printed printed = {.text = BUF_INIT};
    struct cluster_end end = {0};
    const struct sink_reader reader = {.read = on_read, .end = on_read_end, .arg = &printed};
    const struct cluster_run run = {
        .cluster = t->order->cluster,
        .spec = t->spec,
        .image = t->order->image,
        .here = t->order->here,
        .quiet = true,
        .by_program = true,
        .reader = &reader,
        .ret_end = &end,
    };
    t->order->run(&run);
    write_message(&end, &printed, answer);
}

/* False: the message is not whole. *ret_out: borrowed from the answer. */
static bool read_message(const struct buf *answer, struct message *ret_message,
                         struct cluster_end *ret_end, const char **ret_out)
{
    if (answer->failed || answer->len < sizeof *ret_message)
        return false;
    memcpy(ret_message, answer->data, sizeof *ret_message);
    const char *report = answer->data + sizeof *ret_message;
    if (answer->len != sizeof *ret_message + ret_message->report + ret_message->output)
        return false;
    ret_end->err = ret_message->err;
    ret_end->report = json_loadb(report, ret_message->report, 0, NULL);
    *ret_out = report + ret_message->report;
    return true;
}

static struct trial_shape shape_of(const struct trial *t)
{
    const struct job_spec *job = &t->spec->job;
    const struct spec_role *role = &job->roles[0]; /* of several no test is made */
    bool mpirun = job->launch == SPEC_LAUNCH_MPIRUN;
    uint32_t each = spec_role_ranks(role, mpirun, NULL, role->gpus.count);
    return (struct trial_shape){.workers = job->workers,
                                .ranks = each * job->workers,
                                .floor_alone = t->order->options.floor_alone};
}

static void on_ended(const struct buf *text, void *arg)
{
    struct trial *t = arg;
    struct accept_answer answer;
    struct drarun_error fatal = {0};
    struct cluster_end end = {0};
    struct message message = {0};
    const char *out = "";
    bool whole = read_message(text, &message, &end, &out);
    t->process = NULL;
    if (t->wait.not_led || t->wait.unknown) {
        judge_no_run(t, &answer);
    } else if (t->is_late) {
        trial_judge_late(whole && message.output > 0, &t->wait, t->limit_ms, &answer);
    } else if (!whole) {
        give(&answer, ACCEPT_NOT_RUN, "the process that ran its job was killed");
    } else if (message.too_much) { /* it has no deadline but ours */
        give(&answer, ACCEPT_FAILED, TOO_MUCH);
    } else {
        const struct trial_shape shape = shape_of(t);
        trial_judge(&end, &shape, out, message.output, &answer, &fatal);
    }
    json_decref(end.report);
    t->fn(&answer, fatal.code ? &fatal : NULL, t->arg);
    trial_free(t);
}

static int read_job(const json_t *job, struct drarun_spec **ret_spec, struct drarun_error *err)
{
    const struct drarun_spec_options options = drarun_spec_options_init();
    cleanup_free char *text = json_dumps(job, JSON_INDENT(1));
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    int rc = drarun_spec_parse("its spec", text, strlen(text), &options, ret_spec, NULL, err);
    return rc < 0 ? error_prefix(err, "the job of a test is refused") : 0;
}

int trial_start(struct event_base *base, const struct accept_order *order, const json_t *job,
                trial_fn fn, void *arg, struct trial **ret, struct drarun_error *err)
{
    CLEANUP(trial_freep) struct trial *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, ENOMEM, "out of memory");
    *t = (struct trial){.order = order,
                        .fn = fn,
                        .arg = arg,
                        .limit_ms = order->timeout_ms,
                        .begin_ms = clock_ms()};
    t->timer = evtimer_new(base, on_time, t);
    if (!t->timer || !set_timer(t, t->limit_ms))
        return error_set(err, ENOMEM, "out of memory");
    int rc = read_job(job, &t->spec, err);
    if (rc < 0)
        return rc;
    rc = forked_start(base, run_job, on_ended, t, &t->process);
    if (rc < 0)
        return error_set(err, -rc, "the job of a test gets no process: %s", strerror(-rc));
    *ret = TAKE_PTR(t);
    return 0;
}
