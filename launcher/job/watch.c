/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/hang.h"
#include "launcher/job/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

#define LOOKS 8 /* in the time after which a job hangs */
#define LOOK_MIN_MS 50
#define LOOK_MAX_MS 1000
#define NAMED_MAX 4u

struct job_watch {
    struct job *job;
    struct hang *hang;
    int64_t every_ms, after_ms;
    uint32_t ranks; /* that are watched: those that were there from the start */
    char **what;    /* by rank: the step that it was last seen at; NULL: none */
    uint32_t *named;
    bool *answered; /* by worker, this time */
    uint32_t answers;
};

/* ---- what is said ---- */

static const char *place(const struct job *job, uint32_t rank, uint32_t *ret_worker)
{
    const struct request_pods *pods = job->request->pods;
    uint32_t worker = rankmap_place(&job->map, rank).worker;
    *ret_worker = worker;
    return pods                               ? pods->nodes[worker]
           : job->agents[worker].host[0] != 0 ? job->agents[worker].host
                                              : job->identity.hostname;
}

static void add_ranks(const struct job_watch *watch, uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count && i < NAMED_MAX; i++) {
        uint32_t worker;
        const char *host = place(watch->job, watch->named[i], &worker);
        buf_printf(out, "%srank %u on worker %u (%s)", i ? ", " : "", watch->named[i], worker,
                   host);
    }
    if (count > NAMED_MAX)
        buf_printf(out, " and %u others", count - NAMED_MAX);
}

static void end_job(struct job_watch *watch, enum hang_kind kind, uint32_t count, int64_t now)
{
    struct drarun_error err = {0};
    struct buf text = BUF_INIT;
    uint32_t first = watch->named[0];
    const char *what = watch->what[first];
    double s = (double)hang_lasts_ms(watch->hang, first, now) / 1000;
    add_ranks(watch, count, &text);
    const char *have = count > 1 ? "have" : "has";
    if (kind == HANG_STOPPED)
        buf_printf(&text,
                   " %s been stopped for %.1f s (a signal such as SIGSTOP, or a debugger)%s%s",
                   have, s, what ? ", in " : "", what ? what : "");
    else if (!what)
        buf_printf(&text, " %s not begun after %.1f s, and the others wait", have, s);
    else
        buf_printf(&text, " %s not moved for %.1f s in %s, and the others wait", have, s, what);
    error_kind(&err, DRARUN_ERR_TIMEOUT, ETIMEDOUT, "%s", text.data ? text.data : "a rank hangs");
    buf_done(&text);
    job_fail(watch->job, &err);
}

/* ---- looks ---- */

static void see(struct job_watch *watch, const Drarun__Wire__RankVitals *rank, int64_t now)
{
    const struct hang_look look = {
        .stopped = rank->state[0] == 'T',
        .alone = rank->alone,
        .cpu_us = rank->cpu_us,
        .step = rank->step,
    };
    if (rank->rank >= watch->ranks)
        return;
    hang_see(watch->hang, rank->rank, &look, now);
    char **what = &watch->what[rank->rank];
    if (!rank->what[0] || (*what && strcmp(*what, rank->what) == 0))
        return;
    free(*what);
    *what = strdup(rank->what);
}

static void judge(struct job_watch *watch)
{
    int64_t now = clock_ms();
    uint32_t count = 0;
    for (uint32_t i = 0; i < watch->ranks; i++)
        if (watch->job->rank_ended[i])
            hang_see(watch->hang, i, NULL, now);
    enum hang_kind kind = hang_judge(watch->hang, now, watch->named, &count);
    if (kind != HANG_NONE && watch->job->state == JOB_RUNNING)
        end_job(watch, kind, count, now);
}

void job_watch_take(struct job_watch *watch, uint32_t worker, const Drarun__Wire__Vitals *vitals)
{
    if (watch->answered[worker] || watch->job->state != JOB_RUNNING)
        return;
    watch->answered[worker] = true;
    watch->answers++;
    for (size_t i = 0; i < vitals->n_ranks; i++)
        see(watch, vitals->ranks[i], clock_ms());
    if (watch->answers == watch->job->count)
        judge(watch);
}

/* What has been noted ends the job for good. */
static bool is_over(const struct job *job)
{
    return job->state != JOB_RUNNING || (job->caused && !cause_may_change(job->cause));
}

/* A node that is gone, an agent that was killed without a word or is stopped itself. */
static void lose_silent(struct job_watch *watch, int64_t now)
{
    struct job *job = watch->job;
    for (uint32_t i = 0; i < job->count && !is_over(job); i++) {
        struct agent *agent = &job->agents[i];
        struct drarun_error err = {0};
        if (!agent->channel || agent->phase == AGENT_DONE ||
            now - agent->heard_ms < watch->after_ms)
            continue;
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, "no message from it for %.1f s",
                   (double)(now - agent->heard_ms) / 1000);
        agent_lose_silent(agent, &err);
    }
}

void job_watch_tick(struct job_watch *watch)
{
    struct job *job = watch->job;
    int64_t now = clock_ms();
    job_watch_skip(watch, job_tick(job, now, watch->every_ms), now);
    if (job->state != JOB_RUNNING)
        return;
    lose_silent(watch, now);
    watch->answers = 0;
    for (uint32_t i = 0; i < job->count; i++) { /* who is done is not awaited */
        watch->answered[i] = job->agents[i].phase >= AGENT_DONE;
        watch->answers += watch->answered[i];
    }
    job_ask_vitals(job, true);
}

int64_t job_watch_every_ms(const struct job_watch *watch)
{
    return watch->every_ms;
}

void job_watch_skip(struct job_watch *watch, int64_t late_ms, int64_t now_ms)
{
    if (late_ms > 0)
        hang_skip(watch->hang, late_ms, now_ms);
}

/* ---- from begin to end ---- */

struct job_watch *job_watch_new(struct job *job, int64_t after_ms)
{
    struct job_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    watch->job = job;
    watch->after_ms = after_ms;
    watch->every_ms = after_ms / LOOKS < LOOK_MIN_MS   ? LOOK_MIN_MS
                      : after_ms / LOOKS > LOOK_MAX_MS ? LOOK_MAX_MS
                                                       : after_ms / LOOKS;
    watch->ranks = job->map.ranks;
    watch->hang = hang_new(job->map.ranks, after_ms);
    watch->what = calloc(job->map.ranks, sizeof *watch->what);
    watch->named = calloc(job->map.ranks, sizeof *watch->named);
    watch->answered = calloc(job->count, sizeof *watch->answered);
    struct timeval every = timeval_from_ms(watch->every_ms);
    if (watch->hang && watch->what && watch->named && watch->answered &&
        event_add(job->liveness.watch_clock, &every) == 0)
        return watch;
    job_watch_free(watch);
    return NULL;
}

void job_watch_free(struct job_watch *watch)
{
    if (!watch)
        return;
    for (uint32_t i = 0; watch->what && i < watch->ranks; i++)
        free(watch->what[i]);
    hang_free(watch->hang);
    free(watch->what);
    free(watch->named);
    free(watch->answered);
    free(watch);
}
