/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "jobs/manifests/claims.h"
#include "jobs/spec/node_spread.h"
#include "jobs/manifests/objects.h"
#include "jobs/gang/waiting.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/submit/reap.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"

#define TELL_WAITING_MS 2000
#define TURN_MS 60000 /* the longest sleep: the API tells of all that matters */

static int decide(struct lead *lead, uint32_t inspected, const char *missing, const char *suspender,
                  struct drarun_error *err)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    const struct gang_sums *sums = board_sums(lead->board);
    uint32_t asks = gang_sums_first(sums, GANG_MARK_ASKS_GROUP);
    pod_group_want(&lead->group, asks < lead->spec->workers ? workers[asks].group : NULL);
    struct gang_input input = {
        .now_ms = lead_now(),
        .timeouts = &lead->spec->timeouts,
        .workers = workers,
        .count = lead->spec->workers,
        .sums = sums,
        .later_try = lead->render.attempt > 1,
        .inspected = inspected,
        .steps = claims_attempts(lead->spec),
        .suspended = lead_is_suspended(lead),
        .suspended_by = suspender,
        .scheduler_waits = object_has_pod_group(lead->spec, &lead->render),
        .forecast = lead->forecast ? forecast_outlook(lead->forecast, lead->gang.step)
                                   : GANG_FORECAST_UNKNOWN,
        .next_step = lead->forecast ? forecast_next_step(lead->forecast, lead->gang.step) : 0,
        .shortage = missing,
        .refused = lead->refused.code ? lead->refused.text : NULL,
        .spread = node_spread_is_ours_for_any(lead->spec),
        .job = board_job_news(lead->board),
        .no_class = lead->forecast ? forecast_missing_class(lead->forecast) : NULL,
        .group = pod_group_told(&lead->group),
    };
    lead->dirty = false;
    lead->told.undecided = true;
    do {
        int rc = gang_decide(&lead->gang, &input, &lead->decision, err);
        if (rc < 0)
            return rc;
        if (lead->decision.changed)
            log_verbose("job %s: %s (%s)", lead->spec->name, gang_phase_name(lead->decision.phase),
                        lead->decision.event);
    } while (lead->decision.changed && lead->decision.action == GANG_WAIT);
    return 0;
}

int lead_decide(struct lead *lead, uint32_t inspected, struct drarun_error *err)
{
    struct buf suspender = BUF_INIT;
    cleanup_free char *missing = devices_missing(lead_prediction(lead));
    lead_name_suspender(lead, &suspender);
    int rc = decide(lead, inspected, missing, suspender.data, err);
    buf_done(&suspender);
    return rc;
}

/* When the slices are to be read: while no node has room. */
static int64_t look_ms(const struct lead *lead)
{
    return lead->forecast && lead->gang.phase == GANG_PLACING && lead->gang.blocked_ms
               ? forecast_due(lead->forecast, lead->gang.step)
               : INT64_MAX;
}

static void on_answered(void *arg)
{
    struct lead *lead = arg;
    lead->dirty = true;
}

static void look_ahead(struct lead *lead)
{
    if (lead_now() < look_ms(lead))
        return;
    lead_begin_read(lead);
    forecast_start(lead->forecast, lead->gang.step, on_answered, lead);
}

/* When the PodGroup is to be read: while workers have no other reason, in time for the first word.
 */
static int64_t group_ms(const struct lead *lead)
{
    int64_t first = lead->gang.phase_since_ms + TELL_WAITING_MS / 2;
    int64_t due = pod_group_due(&lead->group);
    if (lead->gang.phase != GANG_PLACING)
        return INT64_MAX;
    return due > first ? due : first;
}

static void look_at_group(struct lead *lead)
{
    if (lead_now() < group_ms(lead))
        return;
    lead_begin_read(lead);
    pod_group_start(&lead->group, lead->cluster, lead->options->namespace, on_answered, lead);
}

/* ---- what a decision asks for ---- */

static void say_release(struct lead *lead, const char *pause, const char *how)
{
    struct buf why = BUF_INIT;
    if (lead->refused.code)
        buf_printf(&why, "the workers of attempt %u cannot be created: %s", lead->render.attempt,
                   lead->refused.text);
    log_note("%s; the next try follows %s%s%s",
             why.data ? why.data : "the workers' devices are released",
             pause[0] ? "in " : "at once", pause, how);
    lead_event(lead, REASON_RELEASED,
               why.data
                   ? why.data
                   : "not all workers could be placed: the devices of the others are released");
    buf_done(&why);
}

static int begin_release(struct lead *lead, struct drarun_error *err)
{
    enum claims_rung rung = claims_rung(claims_aligned_role(lead->spec), lead->decision.step);
    const char *how = lead->decision.action != GANG_NEXT_STEP ? ""
                      : rung == CLAIMS_RUNG_NUMA ? " with each GPU and a NIC of its NUMA node"
                                                 : " without alignment in the claims";
    char pause[40] = "";
    if (lead->decision.pause_ms > 0)
        duration_format(lead->decision.pause_ms, pause, sizeof pause);
    say_release(lead, pause, how);
    lead_tell(lead, NULL);
    return delete_workers(lead->cluster, lead->spec, lead->options->namespace, err);
}

static int create_again(struct lead *lead, struct drarun_error *err)
{
    lead->render.attempt++;
    lead->render.step = lead->decision.step;
    lead_tell(lead, NULL);
    return lead_create(lead, err);
}

static int act(struct lead *lead, struct drarun_error *err)
{
    switch (lead->decision.action) {
    case GANG_RELEASE_AND_RETRY:
    case GANG_NEXT_STEP:
        return begin_release(lead, err);
    case GANG_CREATE:
        return create_again(lead, err);
    case GANG_FAIL:
        *err = lead->decision.error;
        return -err->code;
    case GANG_WAIT:
        return lead_let_go_on(lead, err);
    case GANG_START:
        return 0;
    }
    return 0;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When the status may next say why the job waits: as soon as that is another reason, and not more
 * often than people read. The reasons of all workers are not compared at each change of one. */
static int64_t tell_ms(const struct lead *lead)
{
    int64_t first = later(lead->gang.phase_since_ms + TELL_WAITING_MS, lead_answer_ms(lead));
    int64_t compare = later(first, lead->told.compared_ms + LEAD_WORDS_MS);
    return lead->told.words ? later(compare, lead->told.words_ms + TELL_WAITING_MS) : compare;
}

/* Once an attempt: Events are for those who look at the job, and are not many. */
static void tell_event(struct lead *lead)
{
    const json_t *text = json_object_get(json_object_get(lead->doc, "waiting"), "text");
    if (json_is_string(text))
        lead_event(lead, REASON_WAITING, json_string_value(text));
}

/* Returns when to do so again. */
static int64_t tell_waiting(struct lead *lead)
{
    if (!lead->told.undecided)
        return INT64_MAX;
    if (lead_now() < tell_ms(lead))
        return tell_ms(lead);
    lead->told.undecided = false;
    lead->told.compared_ms = lead_now();
    cleanup_free char *words = lead_waiting_words(lead);
    if (!words || (lead->told.words && strcmp(words, lead->told.words) == 0))
        return INT64_MAX;
    lead_tell(lead, NULL);
    if (!lead->told.words)
        tell_event(lead);
    free(lead->told.words);
    lead->told.words = TAKE_PTR(words);
    lead->told.words_ms = lead_now();
    return INT64_MAX;
}

/* Until something has changed or a time has come. */
static void wait_for_news(struct lead *lead)
{
    int64_t now = lead_now(), until = sooner(now + TURN_MS, tell_waiting(lead));
    until = sooner(until, lead_say_waiting(lead));
    until = sooner(until, sooner(lead->decision.next_ms, look_ms(lead)));
    until = sooner(until, group_ms(lead));
    if (lead->left.found)
        until = sooner(until, now + lead->left.due_ms - clock_ms());
    cluster_turn(lead->cluster, until > now ? until - now : 0);
}

static int place(struct lead *lead, struct drarun_error *err)
{
    while (!lead_is_stopped(lead)) {
        lead_look_for_shell(lead);
        if (lead->left.found && clock_ms() >= lead->left.due_ms)
            reap_next(lead->cluster, &lead->left);
        int64_t now = lead_now();
        bool due = now >= lead->decision.next_ms || now >= look_ms(lead) || now >= group_ms(lead);
        if (!lead->dirty && !due) {
            wait_for_news(lead);
            continue;
        }
        int rc = board_check(lead->board, err);
        if (rc == 0)
            rc = lead_decide(lead, 0, err);
        if (rc == 0)
            rc = act(lead, err);
        if (rc < 0)
            return rc;
        if (lead->gang.phase == GANG_STARTING)
            return 0;
        look_ahead(lead);
        look_at_group(lead);
    }
    return -EINTR;
}

int lead_place(struct lead *lead, struct drarun_error *err)
{
    free(TAKE_PTR(lead->told.words));
    lead->dirty = true;
    int rc = place(lead, err);
    if (lead->forecast)
        forecast_stop(lead->forecast);
    pod_group_stop(&lead->group);
    return rc;
}
