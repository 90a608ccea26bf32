/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/gang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/gang_private.h"
#include "jobs/gang/waiting.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/plain.h"
#include "lib/base/timestamp.h"

/* ---- the table ---- */

static const struct transition {
    enum gang_phase phase;
    enum gang_event event;
    enum gang_phase next;
    enum gang_action action;
} transitions[] = {
    {GANG_QUEUED, GANG_EVENT_FATAL, GANG_ENDED, GANG_FAIL},
    {GANG_QUEUED, GANG_EVENT_DEADLINE, GANG_ENDED, GANG_FAIL},
    {GANG_QUEUED, GANG_EVENT_LOST, GANG_RELEASING, GANG_RELEASE_AND_RETRY},
    {GANG_QUEUED, GANG_EVENT_ADMITTED, GANG_PLACING, GANG_WAIT},
    {GANG_PLACING, GANG_EVENT_FATAL, GANG_ENDED, GANG_FAIL},
    {GANG_PLACING, GANG_EVENT_DEADLINE, GANG_ENDED, GANG_FAIL},
    {GANG_PLACING, GANG_EVENT_SUSPENDED, GANG_QUEUED, GANG_WAIT},
    {GANG_PLACING, GANG_EVENT_LOST, GANG_RELEASING, GANG_RELEASE_AND_RETRY},
    {GANG_PLACING, GANG_EVENT_NO_NODE, GANG_RELEASING, GANG_NEXT_STEP},
    {GANG_PLACING, GANG_EVENT_BLOCKED, GANG_RELEASING, GANG_RELEASE_AND_RETRY},
    {GANG_PLACING, GANG_EVENT_PLACED, GANG_PULLING, GANG_WAIT},
    {GANG_PULLING, GANG_EVENT_FATAL, GANG_ENDED, GANG_FAIL},
    {GANG_PULLING, GANG_EVENT_DEADLINE, GANG_ENDED, GANG_FAIL},
    {GANG_PULLING, GANG_EVENT_SUSPENDED, GANG_QUEUED, GANG_WAIT},
    {GANG_PULLING, GANG_EVENT_LOST, GANG_RELEASING, GANG_RELEASE_AND_RETRY},
    {GANG_PULLING, GANG_EVENT_UNPLACED, GANG_PLACING, GANG_WAIT},
    {GANG_PULLING, GANG_EVENT_UP, GANG_STARTING, GANG_WAIT},
    {GANG_STARTING, GANG_EVENT_FATAL, GANG_ENDED, GANG_FAIL},
    {GANG_STARTING, GANG_EVENT_DEADLINE, GANG_ENDED, GANG_FAIL},
    {GANG_STARTING, GANG_EVENT_SUSPENDED, GANG_QUEUED, GANG_WAIT},
    {GANG_STARTING, GANG_EVENT_LOST, GANG_RELEASING, GANG_RELEASE_AND_RETRY},
    {GANG_STARTING, GANG_EVENT_UNPLACED, GANG_PLACING, GANG_WAIT},
    {GANG_STARTING, GANG_EVENT_CHECKED, GANG_RUNNING, GANG_START},
    {GANG_RUNNING, GANG_EVENT_DEADLINE, GANG_ENDED, GANG_FAIL},
    {GANG_RELEASING, GANG_EVENT_FATAL, GANG_ENDED, GANG_FAIL},
    {GANG_RELEASING, GANG_EVENT_DEADLINE, GANG_ENDED, GANG_FAIL},
    {GANG_RELEASING, GANG_EVENT_RESUMED, GANG_QUEUED, GANG_CREATE},
};

static const char *const event_names[GANG_EVENT_COUNT] = {
    [GANG_EVENT_NONE] = "none",         [GANG_EVENT_FATAL] = "fatal",
    [GANG_EVENT_DEADLINE] = "deadline", [GANG_EVENT_RESUMED] = "resumed",
    [GANG_EVENT_LOST] = "lost",         [GANG_EVENT_SUSPENDED] = "suspended",
    [GANG_EVENT_ADMITTED] = "admitted", [GANG_EVENT_UNPLACED] = "unplaced",
    [GANG_EVENT_BLOCKED] = "blocked",   [GANG_EVENT_NO_NODE] = "no-node",
    [GANG_EVENT_PLACED] = "placed",     [GANG_EVENT_UP] = "up",
    [GANG_EVENT_CHECKED] = "checked",
};

static const char *const phase_names[] = {
    [GANG_QUEUED] = "queued",     [GANG_PLACING] = "placing", [GANG_PULLING] = "pulling",
    [GANG_STARTING] = "starting", [GANG_RUNNING] = "running", [GANG_RELEASING] = "releasing",
    [GANG_ENDED] = "ended",
};

static const char *const clock_names[GANG_CLOCK_COUNT] = {
    [GANG_CLOCK_NONE] = "none",
    [GANG_CLOCK_QUEUE] = "queue",
    [GANG_CLOCK_NODES] = "nodes",
    [GANG_CLOCK_ALLOCATION] = "allocation",
    [GANG_CLOCK_IMAGE_PULL] = "imagePull",
    [GANG_CLOCK_START] = "start",
    [GANG_CLOCK_TOTAL] = "total",
};

const char *gang_phase_name(enum gang_phase phase)
{
    return (size_t)phase < ARRAY_LEN(phase_names) && phase_names[phase] ? phase_names[phase]
                                                                        : "unknown";
}

const char *gang_clock_name(enum gang_clock clock)
{
    return (size_t)clock < ARRAY_LEN(clock_names) ? clock_names[clock] : "unknown";
}

/* ---- clocks ---- */

static int64_t limit_of(const struct spec_timeouts *timeouts, enum gang_clock clock)
{
    switch (clock) {
    case GANG_CLOCK_QUEUE:
        return timeouts->queue;
    case GANG_CLOCK_NODES:
        return timeouts->nodes;
    case GANG_CLOCK_ALLOCATION:
        return timeouts->allocation;
    case GANG_CLOCK_IMAGE_PULL:
        return timeouts->image_pull;
    case GANG_CLOCK_START:
        return timeouts->start;
    case GANG_CLOCK_TOTAL:
        return timeouts->total;
    default:
        return 0;
    }
}

/* A pause counts as waiting for devices: a job that is released again and again must end too. */
static enum gang_clock clock_of(enum gang_phase phase, const struct gang_facts *facts)
{
    switch (phase) {
    case GANG_QUEUED:
        return GANG_CLOCK_QUEUE;
    case GANG_PLACING:
        return facts->ordered_ms ? GANG_CLOCK_NODES : GANG_CLOCK_ALLOCATION;
    case GANG_RELEASING:
        return GANG_CLOCK_ALLOCATION;
    case GANG_PULLING:
        return GANG_CLOCK_IMAGE_PULL;
    case GANG_STARTING:
        return GANG_CLOCK_START;
    default:
        return GANG_CLOCK_NONE;
    }
}

static void tick(struct gang *gang, enum gang_clock clock, int64_t since_ms)
{
    if (gang->ticking == clock)
        return;
    gang->spent_ms[gang->ticking] += since_ms - gang->ticking_since_ms;
    gang->ticking = clock;
    gang->ticking_since_ms = since_ms;
}

/* The nodes' clock begins when the first was ordered, which is known later; what was counted
 * before stays. */
static void tick_phase(struct gang *gang, const struct gang_facts *facts, int64_t now_ms)
{
    enum gang_clock clock = clock_of(gang->phase, facts);
    int64_t since = now_ms;
    if (clock == GANG_CLOCK_NODES && facts->ordered_ms < now_ms)
        since =
            facts->ordered_ms > gang->ticking_since_ms ? facts->ordered_ms : gang->ticking_since_ms;
    tick(gang, clock, since);
}

/* Time in the queue is not the job's, as activeDeadlineSeconds does not count suspension. */
int64_t gang_total_end(const struct gang *gang, int64_t total_ms)
{
    int64_t begin = gang->since_ms + gang->timings_ms[GANG_QUEUED];
    return total_ms <= 0 || total_ms > INT64_MAX - begin ? INT64_MAX : begin + total_ms;
}

static int64_t total_deadline(const struct gang *gang, int64_t limit)
{
    bool runs = gang->phase != GANG_QUEUED && gang->phase != GANG_ENDED;
    return runs ? gang_total_end(gang, limit) : INT64_MAX;
}

static int64_t clock_deadline(const struct gang *gang, const struct gang_input *input,
                              enum gang_clock *ret_clock)
{
    int64_t limit = limit_of(input->timeouts, gang->ticking);
    int64_t deadline =
        limit ? gang->ticking_since_ms + limit - gang->spent_ms[gang->ticking] : INT64_MAX;
    int64_t total = total_deadline(gang, input->timeouts->total);
    *ret_clock = total < deadline ? GANG_CLOCK_TOTAL : gang->ticking;
    return total < deadline ? total : deadline;
}

/* ---- pauses ---- */

/* splitmix64 (Vigna, public domain): every bit of the result depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t gang_seed(const char *uid, uint32_t attempt)
{
    uint64_t seed = attempt;
    for (const char *c = uid ? uid : ""; *c; c++)
        seed = mix(seed ^ (unsigned char)*c);
    return seed;
}

/* From half of the pause to all of it: two jobs that gave way to each other must not meet again. */
static int64_t pause_ms(uint64_t seed, uint32_t tries)
{
    int64_t pause = GANG_PAUSE_MIN_MS;
    for (uint32_t i = 0; i < tries && pause < GANG_PAUSE_MAX_MS; i++)
        pause *= 2;
    if (pause > GANG_PAUSE_MAX_MS)
        pause = GANG_PAUSE_MAX_MS;
    return pause / 2 + (int64_t)(mix(seed ^ mix(tries)) % (uint64_t)(pause / 2 + 1));
}

/* ---- events ---- */

/* Since when nothing moves: any new device, node or pod restarts the time. */
static void note_blocked(struct gang *gang, const struct gang_facts *facts, int64_t now_ms)
{
    bool blocked = gang->phase == GANG_PLACING && facts->pending > 0 && !facts->node_comes &&
                   !facts->image_comes && !facts->releasing;
    uint32_t progress = facts->allocated + facts->placed + facts->up + facts->present;
    if (!blocked)
        gang->blocked_ms = 0;
    else if (!gang->blocked_ms || progress != gang->blocked_progress)
        gang->blocked_ms = now_ms;
    gang->blocked_progress = progress;
}

/* more: pods are created all the same. What is left of a released attempt is no trouble. */
static void note_trouble(struct gang *gang, const struct gang_facts *facts, bool more,
                         int64_t now_ms)
{
    bool refused = facts->refused_text[0];
    if ((facts->trouble == GANG_NOBODY && !refused) || gang->phase == GANG_RELEASING)
        gang->trouble_ms = 0;
    else if (!gang->trouble_ms || (refused && more))
        gang->trouble_ms = now_ms;
}

static void note_stranded(struct gang *gang, const struct gang_facts *facts, int64_t now_ms)
{
    if (facts->stranded == GANG_NOBODY || gang->phase == GANG_RELEASING)
        gang->stranded_ms = 0;
    else if (!gang->stranded_ms)
        gang->stranded_ms = now_ms;
}

static bool note_fewer(uint32_t *seen, uint32_t there)
{
    if (there > *seen)
        *seen = there;
    return there < *seen;
}

/* A pod or a claim that was there and is not, without having been seen to go. No pod gets a claim
 * a second time. */
static bool note_missing(struct gang *gang, const struct gang_facts *facts, bool suspended)
{
    bool live = gang->phase <= GANG_STARTING && !suspended;
    if (!live)
        gang->seen = gang->seen_claims = 0;
    bool pod = live && note_fewer(&gang->seen, facts->present);
    bool claim = live && note_fewer(&gang->seen_claims, facts->claimed);
    return pod || claim || (live && facts->vanished);
}

static bool trouble_is_fatal(const struct gang *gang, int64_t now_ms)
{
    return gang->trouble_ms && now_ms - gang->trouble_ms >= GANG_CONFIG_GRACE_MS;
}

/* A quota that has let an earlier try's workers through may do so again. */
static bool may_be_let_through(const struct gang_input *input, const struct gang_facts *facts)
{
    return input->later_try && facts->trouble == GANG_NOBODY &&
           strstr(facts->refused_text, "exceeded quota");
}

static enum gang_event placing_event(const struct gang *gang, const struct gang_input *input,
                                     const struct gang_facts *facts)
{
    /* of a group the scheduler holds a part only while it places all of it */
    int64_t grace =
        input->scheduler_waits && facts->holding > 0 ? GANG_GROUP_GRACE_MS : GANG_GRACE_MS;
    bool over = gang->blocked_ms && input->now_ms - gang->blocked_ms >= grace &&
                input->forecast != GANG_FORECAST_AWAITED;
    bool never = gang->blocked_ms && input->forecast == GANG_FORECAST_NEVER;
    /* what others hold is not there for the next step either, and nobody is kept from it by us */
    bool held_back =
        input->scheduler_waits && facts->holding == 0 && input->forecast == GANG_FORECAST_FULL;
    /* weaker claims would find no more nodes, and stay when nodes come */
    bool last = gang->step + 1 >= input->steps ||
                (input->forecast == GANG_FORECAST_NEVER && input->next_step == GANG_STEP_NONE);
    if (!last && (over || never) && !held_back)
        return GANG_EVENT_NO_NODE;
    if (over && facts->holding > 0)
        return GANG_EVENT_BLOCKED;
    return facts->placed == facts->count ? GANG_EVENT_PLACED : GANG_EVENT_NONE;
}

static enum gang_event progress_event(const struct gang *gang, const struct gang_input *input,
                                      const struct gang_facts *facts)
{
    switch (gang->phase) {
    case GANG_QUEUED:
        return facts->queued || facts->releasing ? GANG_EVENT_NONE : GANG_EVENT_ADMITTED;
    case GANG_PLACING:
        return placing_event(gang, input, facts);
    case GANG_PULLING:
        if (facts->placed < facts->count)
            return GANG_EVENT_UNPLACED;
        return facts->up == facts->count ? GANG_EVENT_UP : GANG_EVENT_NONE;
    case GANG_STARTING:
        if (facts->placed < facts->count)
            return GANG_EVENT_UNPLACED;
        return facts->up == facts->count && input->inspected == facts->count ? GANG_EVENT_CHECKED
                                                                             : GANG_EVENT_NONE;
    case GANG_RELEASING:
        return facts->present == 0 && facts->claimed == 0 && input->now_ms >= gang->resume_ms
                   ? GANG_EVENT_RESUMED
                   : GANG_EVENT_NONE;
    default:
        return GANG_EVENT_NONE;
    }
}

/* While there is time. */
static enum gang_event event_in_time(const struct gang *gang, const struct gang_input *input,
                                     const struct gang_facts *facts, bool missing, bool again)
{
    bool waits = gang->phase != GANG_RUNNING;
    if (!waits || gang->phase == GANG_RELEASING)
        return progress_event(gang, input, facts);
    if (facts->queued && gang->phase != GANG_QUEUED)
        return GANG_EVENT_SUSPENDED;
    bool stranded = gang->stranded_ms && input->now_ms - gang->stranded_ms >= GANG_STRANDED_MS;
    bool lost = (facts->lost != GANG_NOBODY || stranded) && gang->phase != GANG_QUEUED;
    if (lost || missing || input->refused || again)
        return GANG_EVENT_LOST;
    return progress_event(gang, input, facts);
}

/* What was awaited has come, or a queue has taken the workers back, whose time starts again. Nobody
 * may have looked in time: no launcher led the job, or the cluster could not be watched. */
static bool has_come(enum gang_event event)
{
    return event == GANG_EVENT_ADMITTED || event == GANG_EVENT_PLACED || event == GANG_EVENT_UP ||
           event == GANG_EVENT_CHECKED || event == GANG_EVENT_SUSPENDED;
}

static enum gang_event next_event(struct gang *gang, const struct gang_input *input,
                                  const struct gang_facts *facts, bool missing)
{
    enum gang_clock clock;
    bool waits = gang->phase != GANG_RUNNING && gang->phase != GANG_ENDED;
    if (gang->phase == GANG_ENDED)
        return GANG_EVENT_NONE;
    /* what is left of a released attempt cannot be the reason to fail the next */
    bool fatal = facts->fatal_text[0] && gang->phase != GANG_RELEASING;
    bool trouble = trouble_is_fatal(gang, input->now_ms);
    bool again = trouble && may_be_let_through(input, facts);
    if (waits && (fatal || (trouble && !again)))
        return GANG_EVENT_FATAL;
    enum gang_event event = event_in_time(gang, input, facts, missing, again);
    bool late = input->now_ms >= clock_deadline(gang, input, &clock);
    return late && (clock == GANG_CLOCK_TOTAL || !has_come(event)) ? GANG_EVENT_DEADLINE : event;
}

/* ---- what is said ---- */

static void say_worker(const struct gang_input *input, uint32_t worker, struct drarun_error *err)
{
    if (worker == GANG_NOBODY || worker >= input->count)
        return;
    const char *node = input->workers[worker].node;
    if (node)
        error_prefix(err, "worker %u on %s", worker, node);
    else
        error_prefix(err, "worker %u", worker);
}

static void say_trouble(const struct pod_state *w, struct drarun_error *err)
{
    const char *advice = container_advice(w), *container = w->container ? w->container : "?";
    const char *reason = w->reason ? w->reason : "?";
    const char *message = w->message ? w->message : "no message";
    if (w->claim == CLAIM_NO_TEMPLATE)
        error_kind(err, DRARUN_ERR_CLUSTER, ECANCELED, "its claim cannot be made: %s",
                   w->claim_message ? w->claim_message : "no message");
    else if (container_is_restarted(w))
        error_kind(err, DRARUN_ERR_SPEC, ECANCELED,
                   "container %s %s: %s: %s; its log says why: kubectl logs %s -c %s --previous",
                   container, container_deed(w), reason, message, w->name ? w->name : "POD",
                   container);
    else
        error_kind(err, DRARUN_ERR_SPEC, ECANCELED, "container %s %s: %s: %s%s%s", container,
                   container_deed(w), reason, message, advice ? "; " : "", advice ? advice : "");
}

static void say_fatal(const struct gang_input *input, const struct gang_facts *facts,
                      struct gang_decision *decision)
{
    struct drarun_error *err = &decision->error;
    if (facts->fatal_text[0]) {
        error_kind(err, facts->fatal_kind, ECANCELED, "%s", facts->fatal_text);
        decision->worker = facts->fatal;
    } else if (facts->trouble != GANG_NOBODY) {
        say_trouble(&input->workers[facts->trouble], err);
        decision->worker = facts->trouble;
    } else if (facts->refused_text[0]) {
        error_kind(err, DRARUN_ERR_CLUSTER, ECANCELED, "%s", facts->refused_text);
        decision->worker = facts->refused;
    }
    say_worker(input, decision->worker, err);
}

static const struct deadline_text {
    enum drarun_errkind kind;
    const char *text; /* after "N of M workers" */
} deadline_texts[GANG_CLOCK_COUNT] = {
    [GANG_CLOCK_QUEUE] = {DRARUN_ERR_CAPACITY, "were admitted"},
    [GANG_CLOCK_NODES] = {DRARUN_ERR_CAPACITY,
                          "have claims and nodes; the requested nodes did not come"},
    [GANG_CLOCK_ALLOCATION] = {DRARUN_ERR_CAPACITY, "have claims and nodes"},
    [GANG_CLOCK_IMAGE_PULL] = {DRARUN_ERR_INFRASTRUCTURE, "have their images and run"},
    [GANG_CLOCK_START] = {DRARUN_ERR_INFRASTRUCTURE, "have started and reported what they hold"},
};

/* The first worker that keeps the others waiting; of those whose pods start rather one of which
 * something is said to fail. */
static uint32_t laggard(const struct gang_input *input, enum gang_clock clock)
{
    uint32_t first = GANG_NOBODY;
    for (uint32_t i = 0; i < input->count; i++) {
        const struct pod_state *w = &input->workers[i];
        bool starts = clock == GANG_CLOCK_IMAGE_PULL && w->phase != POD_RUNNING;
        if (starts && (w->reason || waiting_for_kubelet(w)))
            return i;
        if (first == GANG_NOBODY && (starts || !pod_state_placed(w)))
            first = i;
    }
    return first;
}

/* NULL: it says nothing. */
static char *words_of(const struct gang_input *input, uint32_t worker, enum gang_clock clock)
{
    const struct pod_state *w = &input->workers[worker];
    struct buf out = BUF_INIT;
    if (clock != GANG_CLOCK_IMAGE_PULL) {
        bool stuck;
        char *of_group = group_words(input->workers, input->count, worker, input->group, &stuck);
        return of_group || !w->message ? of_group : scheduler_words(w->message);
    }
    cleanup_free char *waits = waiting_of_worker(w);
    if (waits)
        buf_printf(&out, "worker %u%s%s: %s", worker, w->node ? " on " : "", w->node ? w->node : "",
                   waits);
    char *words = out.failed || out.len == 0 ? NULL : buf_take(&out);
    buf_done(&out);
    return words;
}

static uint32_t done_until(const struct gang_input *input, const struct gang_facts *facts,
                           enum gang_clock clock)
{
    if (clock == GANG_CLOCK_QUEUE)
        return 0;
    if (clock == GANG_CLOCK_IMAGE_PULL)
        return facts->up;
    return clock == GANG_CLOCK_START ? input->inspected : facts->placed;
}

/* What the autoscaler said of it last. */
static char *autoscaler_words(const struct pod_state *w)
{
    struct buf out = BUF_INIT;
    const struct news_item *item = news_scale_up(w->news);
    if (!item)
        item = news_get(w->news, NEWS_NO_SCALE_UP);
    if (item)
        buf_printf(&out, "the autoscaler: %s", item->text);
    char *words = out.failed || out.len == 0 ? NULL : buf_take(&out);
    buf_done(&out);
    return words;
}

/* Why the job waits, late being the worker that it waits for; NULL: nothing says so. */
static char *reason_of(const struct gang_input *input, uint32_t late, enum gang_clock clock)
{
    if (clock == GANG_CLOCK_QUEUE && input->suspended_by)
        return strdup(input->suspended_by);
    if (clock == GANG_CLOCK_ALLOCATION && (input->refused || input->shortage))
        return strdup(input->refused ? input->refused : input->shortage);
    if (late == GANG_NOBODY)
        return NULL;
    char *autoscaler = clock == GANG_CLOCK_NODES ? autoscaler_words(&input->workers[late]) : NULL;
    if (autoscaler)
        return autoscaler;
    char *spread = input->spread
                       ? spread_words(input->workers, input->count, input->workers[late].message)
                       : NULL;
    return spread ? spread : words_of(input, late, clock);
}

/* The next try knows no reason before the scheduler has looked at it; this one's is still true. */
static void keep_reason(struct gang *gang, const struct gang_input *input)
{
    cleanup_free char *why =
        reason_of(input, laggard(input, GANG_CLOCK_ALLOCATION), GANG_CLOCK_ALLOCATION);
    utf8_copy(gang->reason, sizeof gang->reason, why ? why : "");
}

static void say_deadline(const struct gang *gang, const struct gang_input *input,
                         const struct gang_facts *facts, enum gang_clock clock,
                         struct gang_decision *decision)
{
    struct drarun_error *err = &decision->error;
    char limit[40];
    duration_format(limit_of(input->timeouts, clock), limit, sizeof limit);
    if (clock == GANG_CLOCK_TOTAL) {
        error_kind(err, DRARUN_ERR_TIMEOUT, ETIME, "the job did not end within %s (timeouts.total)",
                   limit);
        return;
    }
    uint32_t late = clock == GANG_CLOCK_START ? GANG_NOBODY : laggard(input, clock);
    cleanup_free char *why = reason_of(input, late, clock);
    bool before = !why && clock == GANG_CLOCK_ALLOCATION && gang->reason[0];
    error_kind(err, deadline_texts[clock].kind, ETIME,
               "%u of %u workers %s within %s (timeouts.%s)%s%s%s", done_until(input, facts, clock),
               facts->count, deadline_texts[clock].text, limit, clock_names[clock],
               why || before ? ": " : "",
               why      ? why
               : before ? gang->reason
                        : "",
               before ? " (from the try before this one)" : "");
    decision->worker = late;
}

/* ---- decisions ---- */

static void enter(struct gang *gang, enum gang_phase phase, int64_t now_ms)
{
    gang->timings_ms[gang->phase] += now_ms - gang->phase_since_ms;
    gang->phase = phase;
    gang->phase_since_ms = now_ms;
    gang->blocked_ms = 0;
    gang->trouble_ms = 0;
    gang->stranded_ms = 0;
    if (phase == GANG_PULLING) /* all have been placed */
        gang->reason[0] = '\0';
    if (phase == GANG_STARTING)
        gang->spent_ms[GANG_CLOCK_START] = 0;
    if (phase == GANG_RELEASING || phase == GANG_QUEUED)
        gang->seen = gang->seen_claims = 0;
}

/* Admitted again: what was spent before belongs to an earlier try. */
static void forget_clocks(struct gang *gang, int64_t now_ms)
{
    gang->ticking_since_ms = now_ms;
    gang->spent_ms[GANG_CLOCK_NODES] = 0;
    gang->spent_ms[GANG_CLOCK_ALLOCATION] = 0;
    gang->spent_ms[GANG_CLOCK_IMAGE_PULL] = 0;
}

/* Without a try of those that no slices can ever meet. */
static unsigned next_step(const struct gang *gang, const struct gang_input *input)
{
    bool known = input->forecast == GANG_FORECAST_NEVER && input->next_step > gang->step &&
                 input->next_step < input->steps;
    return known ? input->next_step : gang->step + 1;
}

static void act(struct gang *gang, const struct gang_input *input, const struct gang_facts *facts,
                enum gang_event event, struct gang_decision *decision)
{
    enum gang_clock clock;
    if (event == GANG_EVENT_FATAL)
        say_fatal(input, facts, decision);
    if (event == GANG_EVENT_DEADLINE) {
        clock_deadline(gang, input, &clock);
        say_deadline(gang, input, facts, clock, decision);
    }
    if (event == GANG_EVENT_SUSPENDED)
        forget_clocks(gang, input->now_ms);
    if (event == GANG_EVENT_LOST)
        decision->worker = facts->lost != GANG_NOBODY ? facts->lost : facts->stranded;
    if (event == GANG_EVENT_BLOCKED)
        decision->worker = facts->blocked;
    if (event == GANG_EVENT_BLOCKED || event == GANG_EVENT_NO_NODE || input->refused)
        keep_reason(gang, input);
    else if (event == GANG_EVENT_LOST && facts->refused_text[0])
        utf8_copy(gang->reason, sizeof gang->reason, facts->refused_text);
    if (decision->action == GANG_RELEASE_AND_RETRY)
        decision->pause_ms = pause_ms(gang->seed, gang->tries++);
    if (decision->action == GANG_NEXT_STEP)
        gang->step = next_step(gang, input);
    if (decision->action == GANG_RELEASE_AND_RETRY || decision->action == GANG_NEXT_STEP)
        gang->resume_ms = input->now_ms + decision->pause_ms;
}

static int transit(struct gang *gang, const struct gang_input *input,
                   const struct gang_facts *facts, enum gang_event event,
                   struct gang_decision *decision, struct drarun_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
        const struct transition *t = &transitions[i];
        if (t->phase != gang->phase || t->event != event)
            continue;
        decision->action = t->action;
        decision->changed = true;
        decision->event = event_names[event];
        act(gang, input, facts, event, decision);
        enter(gang, t->next, input->now_ms);
        return 0;
    }
    return error_set(err, EINVAL, "gang: no transition for %s in phase %s", event_names[event],
                     gang_phase_name(gang->phase));
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When to ask again though nothing has changed. */
static void set_next(const struct gang *gang, const struct gang_input *input,
                     struct gang_decision *decision)
{
    int64_t grace = INT64_MAX;
    if (gang->blocked_ms)
        grace = sooner(grace, gang->blocked_ms + GANG_GRACE_MS);
    if (grace <= input->now_ms && input->scheduler_waits)
        grace = gang->blocked_ms + GANG_GROUP_GRACE_MS;
    if (gang->trouble_ms)
        grace = sooner(grace, gang->trouble_ms + GANG_CONFIG_GRACE_MS);
    if (gang->stranded_ms)
        grace = sooner(grace, gang->stranded_ms + GANG_STRANDED_MS);
    if (gang->phase == GANG_RELEASING)
        grace = sooner(grace, gang->resume_ms);
    if (grace <= input->now_ms) /* it has passed without effect */
        grace = INT64_MAX;
    decision->next_ms = clock_deadline(gang, input, &decision->clock);
    if (grace < decision->next_ms) {
        decision->next_ms = grace;
        decision->clock = GANG_CLOCK_NONE;
    }
    if (decision->next_ms == INT64_MAX)
        decision->clock = GANG_CLOCK_NONE;
    if (decision->changed && decision->action == GANG_WAIT)
        decision->next_ms = input->now_ms;
}

int gang_decide(struct gang *gang, const struct gang_input *input,
                struct gang_decision *ret_decision, struct drarun_error *err)
{
    struct gang_facts facts;
    gang_facts(input, &facts);
    struct gang next = *gang;
    if (input->steps > 0 && next.step >= input->steps) /* from the document of another version */
        next.step = input->steps - 1;
    struct gang_decision decision = {
        .action = GANG_WAIT, .event = event_names[GANG_EVENT_NONE], .worker = GANG_NOBODY};
    bool more = facts.present > next.seen;
    bool missing = note_missing(&next, &facts, input->suspended);
    tick_phase(&next, &facts, input->now_ms);
    note_blocked(&next, &facts, input->now_ms);
    note_trouble(&next, &facts, more, input->now_ms);
    note_stranded(&next, &facts, input->now_ms);
    enum gang_event event = next_event(&next, input, &facts, missing);
    int rc = event == GANG_EVENT_NONE ? 0 : transit(&next, input, &facts, event, &decision, err);
    if (rc < 0)
        return rc;
    tick_phase(&next, &facts, input->now_ms);
    decision.phase = next.phase;
    decision.step = next.step;
    set_next(&next, input, &decision);
    *gang = next;
    *ret_decision = decision;
    return 0;
}

int gang_judge_launcher(const struct pod_state *pod, const struct spec_timeouts *timeouts,
                        int64_t waited_ms, int64_t *ret_limit_ms, struct drarun_error *err)
{
    bool bound = pod->phase >= POD_BOUND;
    enum gang_clock clock = bound             ? GANG_CLOCK_IMAGE_PULL
                            : pod->ordered_ms ? GANG_CLOCK_NODES
                                              : GANG_CLOCK_ALLOCATION;
    char limit[40];
    *ret_limit_ms = timeouts ? limit_of(timeouts, clock) : 0;
    if (gang_image_is_lost(pod, err))
        return -ECANCELED;
    if (*ret_limit_ms == 0 || waited_ms < *ret_limit_ms)
        return 0;
    duration_format(*ret_limit_ms, limit, sizeof limit);
    return error_kind(err, deadline_texts[clock].kind, ETIME,
                      "the launcher has not started within %s (timeouts.%s)", limit,
                      clock_names[clock]);
}

void gang_init(struct gang *gang, uint64_t seed, int64_t now_ms)
{
    *gang = (struct gang){.phase = GANG_QUEUED,
                          .phase_since_ms = now_ms,
                          .since_ms = now_ms,
                          .seed = seed,
                          .ticking = GANG_CLOCK_QUEUE,
                          .ticking_since_ms = now_ms};
}

void gang_init_next(struct gang *gang, uint64_t seed, int64_t now_ms)
{
    int64_t queued = gang->timings_ms[GANG_QUEUED];
    if (gang->phase == GANG_QUEUED)
        queued += now_ms - gang->phase_since_ms;
    int64_t since = gang->since_ms + queued;
    gang_init(gang, seed, now_ms);
    gang->since_ms = since;
}

void gang_end(struct gang *gang, int64_t now_ms)
{
    if (gang->phase == GANG_ENDED)
        return;
    tick(gang, GANG_CLOCK_NONE, now_ms);
    enter(gang, GANG_ENDED, now_ms);
}
