/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/gang/gang.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/program_find.h"
#include "lib/base/timestamp.h"
#include "lib/bench/runs.h"
#include "lib/child/child.h"

#define MARK "drarun: "           /* of what drarun says */
#define PULLING "is being pulled" /* an image: jobs/gang/waiting_worker.c */
#define SAID_MAX ((size_t)4 << 20)
#define STOP_MS 60000    /* from the first signal to the last */
#define UNKNOWN_MS 30000 /* to the next look at a wait that is not known */
#define UNKNOWN_MAX 6    /* looks */

struct trial {
    struct child *child;
    struct event *timer;
    int64_t limit_ms, begin_ms; /* by clock_ms */
    bool is_due;                /* the caller is to decide */
    bool is_stopped, is_late;
    struct trial_wait wait;    /* as it was when the time was over */
    unsigned unknown;          /* looks in a row that found no more */
    char path[512], said[520]; /* its files: the spec, its stderr */
    trial_fn fn;
    void *arg;
};

void trial_free(struct trial *t)
{
    if (!t)
        return;
    child_free(t->child);
    if (t->timer)
        event_free(t->timer);
    if (t->path[0])
        unlink(t->path);
    if (t->said[0])
        unlink(t->said);
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

/* The best row's bus bandwidth of the last run that was printed; of each the data must be right,
 * and its end there. */
static void judge_figures(const char *out, size_t length, struct accept_answer *ret)
{
    struct drarun_error err = {0};
    CLEANUP(runs_done) struct runs runs = {0};
    int rc = runs_read(out, length, "output", &runs, &err);
    const struct result_row *row;
    for (size_t i = 0; rc == 0 && i < runs.count; i++)
        if (is_refused(runs.list[i], ret))
            return;
    const struct result *result = runs.count ? &runs.list[runs.count - 1]->result : NULL;
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

static bool begins(const char *line, const char *words)
{
    return strncmp(line, words, strlen(words)) == 0;
}

/* The last report of drarun's, "rank 3 on worker 0 (x) exited with status 1 after 5 ms", and the
 * last line of the rank's that follows it. */
static void take_reason(const char *said, char text[ACCEPT_REASON])
{
    static const char rank[] = "    ";
    const char *report = NULL, *word = NULL;
    for (const char *line = said; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (begins(line, MARK)) {
            report = line + strlen(MARK);
            word = NULL;
        } else if (report && begins(line, rank)) {
            word = line + strlen(rank);
        }
    }
    if (!report)
        snprintf(text, ACCEPT_REASON, "the job ended without a word");
    else
        snprintf(text, ACCEPT_REASON, "%.*s%s%.*s", least(strcspn(report, "\n"), 160), report,
                 word ? ": " : "", word ? least(strcspn(word, "\n"), 90) : 0, word ? word : "");
}

/* What the benchmark itself found wrong tells more than the status that it ended with. */
static bool judge_words(const char *out, size_t length, struct accept_answer *ret)
{
    struct drarun_error unread = {0};
    CLEANUP(runs_done) struct runs runs = {0};
    int rc = runs_read(out, length, "output", &runs, &unread);
    for (size_t i = 0; rc == 0 && i < runs.count; i++)
        if (says_no(&runs.list[i]->result, ret))
            return true;
    return false;
}

/* Exit statuses: drarun(1). */
int trial_judge(int status, const char *out, size_t length, const char *said,
                struct accept_answer *ret, struct drarun_error *fatal)
{
    char why[ACCEPT_REASON];
    if (status == 0) {
        judge_figures(out, length, ret);
        return 0;
    }
    take_reason(said, why);
    if (status == error_exit_status(DRARUN_ERR_USAGE) ||
        status == error_exit_status(DRARUN_ERR_SPEC))
        return error_kind(fatal, DRARUN_ERR_SPEC, EINVAL, "the job of a test is refused: %s", why);
    bool not_run = status == error_exit_status(DRARUN_ERR_CLUSTER) ||
                   status == error_exit_status(DRARUN_ERR_CAPACITY) || status < 0 ||
                   status == 128 + SIGINT || status == 128 + SIGTERM;
    if (not_run || !judge_words(out, length, ret))
        give(ret, not_run ? ACCEPT_NOT_RUN : ACCEPT_FAILED, why);
    ret->refused = status == error_exit_status(DRARUN_ERR_PREFLIGHT);
    return 0;
}

/* Of drarun's own lines the last that says what it waits for, behind its name; NULL: there is
 * none. */
static const char *last_wait(const char *said)
{
    const char *last = NULL;
    for (const char *line = said; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!begins(line, MARK))
            continue;
        const char *words = line + strlen(MARK);
        if (begins(words, "waiting") || begins(words, "the launcher does not start: "))
            last = words;
    }
    return last;
}

/* The wait that an image's pull was when the time was over; NULL: it was for something else, or a
 * rank had printed already. */
static const char *last_pull(size_t length, const char *said)
{
    const char *wait = length == 0 ? last_wait(said) : NULL;
    const char *at = wait ? strstr(wait, PULLING) : NULL;
    return at && at < wait + strcspn(wait, "\n") ? wait : NULL;
}

void trial_judge_late(size_t length, const char *said, int64_t limit_ms, struct accept_answer *ret)
{
    char limit[32], text[ACCEPT_REASON];
    const char *pull = last_pull(length, said);
    duration_format(limit_ms, limit, sizeof limit);
    if (pull)
        snprintf(text, sizeof text, "no rank had printed anything after %s: %.*s", limit,
                 least(strcspn(pull, "\n"), 190), pull);
    else
        snprintf(text, sizeof text, "it had not ended after %s", limit);
    give(ret, pull ? ACCEPT_NOT_RUN : ACCEPT_FAILED, text);
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

void trial_wait_read(const json_t *doc, struct trial_wait *ret)
{
    const char *phase = json_string_value(json_object_get(doc, "phase"));
    const json_t *history = json_object_get(doc, "history");
    json_int_t earlier = json_integer_value(json_object_get(doc, "attempt")) - 1;
    const json_t *later = doc;
    size_t i;
    *ret = (struct trial_wait){.not_led = !phase, .waited_ms = waited_ms(doc)};
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
        child_signal(t->child, SIGKILL);
    else
        t->is_due = true;
}

void trial_stop(struct trial *t)
{
    t->is_stopped = true;
    t->is_due = false;
    set_timer(t, STOP_MS);
    child_signal(t->child, SIGTERM);
}

/* ---- the child ---- */

static void on_end(const struct child_end *end, const struct drarun_error *err, void *arg)
{
    struct trial *t = arg;
    struct accept_answer answer;
    struct drarun_error fatal = {0};
    char text[128], limit[32];
    struct drarun_error unread = {0};
    CLEANUP(buf_done) struct buf said = BUF_INIT;
    file_read(AT_FDCWD, t->said, SAID_MAX, &said, &unread);
    const char *words = said.data ? said.data : unread.text;
    t->child = NULL;
    if (t->wait.not_led || t->wait.unknown) {
        judge_no_run(t, &answer);
    } else if (t->is_late) {
        trial_judge_late(end->out->len, words, t->limit_ms, &answer);
    } else if (err) { /* EFBIG: it has no deadline but ours */
        duration_format(t->limit_ms, limit, sizeof limit);
        snprintf(text, sizeof text, "it printed too much within %s", limit);
        give(&answer, ACCEPT_FAILED, text);
    } else {
        trial_judge(end->known ? end->status : -SIGKILL, end->out->data ? end->out->data : "",
                    end->out->len, words, &answer, &fatal);
    }
    t->fn(&answer, fatal.code ? &fatal : NULL, t->arg);
    trial_free(t);
}

static void add(struct strlist *line, const char *option, const char *value)
{
    if (!value)
        return;
    strlist_add(line, option);
    strlist_add(line, value);
}

static int write_job(struct trial *t, const char *dir, const json_t *job, struct drarun_error *err)
{
    const char *name = json_string_value(json_object_get(json_object_get(job, "metadata"), "name"));
    char *text = json_dumps(job, JSON_INDENT(1));
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    snprintf(t->path, sizeof t->path, "%s/%s.json", dir, name);
    snprintf(t->said, sizeof t->said, "%s/%s.err", dir, name);
    int rc = file_write_atomic(t->path, text, strlen(text), 0600, err);
    free(text);
    return rc;
}

static int start_child(struct trial *t, struct event_base *base, const struct accept_order *order,
                       struct drarun_error *err)
{
    char program[PATH_MAX];
    CLEANUP(strlist_done) struct strlist line = STRLIST_INIT;
    int rc = program_find("drarun", NULL, program, err);
    if (rc < 0)
        return rc;
    strlist_add(&line, "/bin/sh"); /* for a stderr that is kept whole */
    strlist_add(&line, "-c");
    strlist_add(&line, "exec \"$@\" 2>\"$0\"");
    strlist_add(&line, t->said);
    strlist_add(&line, program);
    strlist_add(&line, "run");
    strlist_add(&line, t->path);
    if (order->here)
        strlist_add(&line, "--here");
    add(&line, "--namespace", order->cluster.namespace);
    add(&line, "--context", order->cluster.context);
    add(&line, "--kubeconfig", order->cluster.kubeconfig);
    add(&line, "--image", order->image);
    if (line.failed)
        return error_set(err, ENOMEM, "out of memory");
    const struct child_program child = {.argv = line.items, .env = environ};
    rc = child_start(base, &child, on_end, t, &t->child);
    return rc < 0 ? error_set(err, -rc, "%s: %s", program, strerror(-rc)) : 0;
}

int trial_start(struct event_base *base, const struct accept_order *order, const char *dir,
                const json_t *job, trial_fn fn, void *arg, struct trial **ret,
                struct drarun_error *err)
{
    CLEANUP(trial_freep) struct trial *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, ENOMEM, "out of memory");
    *t =
        (struct trial){.fn = fn, .arg = arg, .limit_ms = order->timeout_ms, .begin_ms = clock_ms()};
    t->timer = evtimer_new(base, on_time, t);
    if (!t->timer || !set_timer(t, t->limit_ms))
        return error_set(err, ENOMEM, "out of memory");
    int rc = write_job(t, dir, job, err);
    if (rc == 0)
        rc = start_child(t, base, order, err);
    if (rc < 0)
        return rc;
    *ret = TAKE_PTR(t);
    return 0;
}
