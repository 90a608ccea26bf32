/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/awaited.h"

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define UNREPORTED_MS 5000 /* a launcher that leads reports what it waits for after 2 s */

void follow_awaited_done(struct follow_awaited *awaited)
{
    waiting_told_done(&awaited->told);
}

static bool is_long_reading(const struct follow_awaited *awaited)
{
    int64_t running_ms = *awaited->running_ms;
    return running_ms && clock_ms() - running_ms >= FOLLOW_WAITED_MS;
}

/* The launcher that runs and has reported nothing; NULL: there is none. */
static const char *unreported(const struct follow_awaited *awaited)
{
    const struct follow_state *state = awaited->state;
    if (state->doc || state->ended_ms || follow_state_is_suspended(state))
        return NULL;
    return follow_pod_running(&state->pod);
}

void follow_awaited_words(const struct follow_awaited *awaited, struct buf *text)
{
    const json_t *waiting = json_object_get(awaited->state->doc, "waiting");
    const char *words = json_string_value(json_object_get(waiting, "text"));
    if (!awaited->state->ended_ms)
        follow_launcher_words(awaited->launcher, text);
    if (!awaited->state->ended_ms && text->len == 0 && is_long_reading(awaited))
        buf_printf(text, "the workers are up; reading the log of %s",
                   follow_state_leader(awaited->state));
    if (awaited->state->ended_ms || follow_state_is_running(awaited->state) || text->len > 0)
        return;
    CLEANUP(waiting_launcher_done) struct waiting_launcher launcher;
    follow_pod_waits(&awaited->state->pod, &launcher);
    if (words && !launcher.fails) {
        buf_add_str(text, words);
        return;
    }
    if (launcher.text && launcher.fails && !follow_state_is_suspended(awaited->state)) {
        /* its image or its node first: there may be no room for more */
        buf_printf(text, "the launcher does not start: %s", launcher.text + launcher.why);
        return;
    }
    buf_add_str(text, FOLLOW_LAUNCHER_WAIT);
    const char *queue = follow_state_queue(awaited->state), *pod = unreported(awaited);
    if (follow_state_is_suspended(awaited->state) && queue)
        buf_printf(text, ": queue %s has not admitted it", queue);
    else if (follow_state_is_suspended(awaited->state))
        buf_add_str(text, ": the job is suspended (spec.suspend)");
    else if (launcher.text)
        buf_printf(text, ": %s", launcher.text);
    else if (pod)
        buf_printf(text, ": pod %s runs and has not reported yet", pod);
}

/* Why it waits, without for how long; NULL: for nothing, or its launcher has told nothing yet. */
static const char *reason_of(const struct follow_awaited *awaited)
{
    const json_t *reasons =
        json_object_get(json_object_get(awaited->state->doc, "waiting"), "reasons");
    if (awaited->state->ended_ms || follow_state_is_running(awaited->state))
        return NULL;
    if (follow_state_is_suspended(awaited->state))
        return "suspended";
    return json_string_value(json_object_get(json_array_get(reasons, 0), "text"));
}

static void say(const struct follow_awaited *awaited)
{
    struct buf text = BUF_INIT;
    follow_awaited_words(awaited, &text);
    if (text.data)
        log_note("%s", text.data);
    buf_done(&text);
}

static void note_unreported(struct follow_awaited *awaited, int64_t now)
{
    if (!unreported(awaited))
        awaited->unreported_ms = 0;
    else if (!awaited->unreported_ms)
        awaited->unreported_ms = now;
}

/* Once. */
static int64_t say_unreported(struct follow_awaited *awaited, int64_t now)
{
    int64_t at = awaited->unreported_ms + UNREPORTED_MS;
    if (awaited->told_unreported)
        return 0;
    if (now < at)
        return at;
    awaited->told_unreported = true;
    say(awaited);
    return 0;
}

/* Once, however often what was said before has changed. */
static int64_t say_reading(struct follow_awaited *awaited)
{
    if (awaited->told_reading || awaited->launcher->silent)
        return 0;
    if (!is_long_reading(awaited))
        return *awaited->running_ms + FOLLOW_WAITED_MS;
    awaited->told_reading = true;
    say(awaited);
    return 0;
}

int64_t follow_awaited_say(struct follow_awaited *awaited, int64_t since_ms, int64_t now)
{
    struct waiting_launcher launcher;
    int64_t next_ms = 0;
    note_unreported(awaited, now);
    if (now - since_ms < FOLLOW_WAITED_MS)
        return since_ms + FOLLOW_WAITED_MS;
    if (*awaited->running_ms)
        return say_reading(awaited);
    follow_pod_waits(&awaited->state->pod, &launcher);
    bool fails = launcher.fails;
    waiting_launcher_done(&launcher);
    if (fails || awaited->launcher->silent)
        return 0;
    if (awaited->unreported_ms)
        return say_unreported(awaited, now);
    if (!waiting_tell(&awaited->told, reason_of(awaited), now, &next_ms))
        return next_ms;
    say(awaited);
    return 0;
}
