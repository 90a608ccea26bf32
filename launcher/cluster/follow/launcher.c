/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/launcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define EVENTS_MS 1500  /* before Events are read: most launchers have started by then */
#define FIRST_MS 5000   /* before its Lease is read: most jobs of tests have ended by then */
#define CONFIRM_MS 3000 /* between the answers by which it is silent */
#define AGAIN_MS 5000   /* of a Lease that cannot be read, or is not renewed */

/* ---- one that does not start ---- */

static void on_event(const json_t *event, void *arg)
{
    struct follow_launcher *launcher = arg;
    follow_pod_hear(launcher->pod, event);
    launcher->changed(launcher->arg);
}

static void on_event_changed(const json_t *event, const json_t *before, void *arg)
{
    (void)before;
    on_event(event, arg);
}

/* Who may not read them knows what the pod's own status says. */
static void on_event_trouble(const struct drarun_error *err, void *arg)
{
    (void)arg;
    if (err)
        log_verbose("%s", err->text);
}

static const struct kube_watch_events event_events = {
    .added = on_event, .changed = on_event_changed, .trouble = on_event_trouble};

static void watch_events(struct follow_launcher *launcher)
{
    struct drarun_error err = {0};
    const struct kube_watch_options options = {
        .target = {.resource = &kube_events, .namespace_ = launcher->pod->namespace},
        .forget = true,
    };
    if (kube_watch_new(launcher->client, &options, &event_events, launcher, &launcher->events,
                       &err) < 0)
        log_verbose("%s", err.text);
}

/* text: what is said; same: its bytes that stay. Once each time that it is something else. */
static void tell_changed(struct follow_launcher *launcher, const char *text, size_t same)
{
    cleanup_free char *stays = strndup(text, same);
    if (!stays || (launcher->told && strcmp(launcher->told, stays) == 0))
        return;
    launcher->say(launcher->arg, text);
    free(launcher->told);
    launcher->told = TAKE_PTR(stays);
}

static void tell_wait(struct follow_launcher *launcher, const char *what,
                      const struct waiting_launcher *waits)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, what);
    size_t same = text.len + waits->same;
    buf_add_str(&text, waits->text);
    if (!text.failed)
        tell_changed(launcher, text.data, same);
    buf_done(&text);
}

static void tell(struct follow_launcher *launcher)
{
    CLEANUP(waiting_launcher_done) struct waiting_launcher waits;
    follow_pod_waits(launcher->pod, &waits);
    if (waits.text && (waits.fails || launcher->tells_all))
        tell_wait(launcher,
                  waits.fails ? "the launcher does not start: " : FOLLOW_LAUNCHER_WAIT ": ",
                  &waits);
}

/* Of a launcher that is silent: the pod that could take the job over. */
static void tell_successor(struct follow_launcher *launcher)
{
    const struct launcher_silence *silence = &launcher->silence;
    CLEANUP(waiting_launcher_done) struct waiting_launcher waits;
    if (!launcher->events)
        watch_events(launcher);
    follow_pod_successor(launcher->pod, silence->holder, silence->renewed_ms, &waits);
    if (waits.text && waits.fails)
        tell_wait(launcher, "the launcher's successor does not start: ", &waits);
}

static int judge(struct follow_launcher *launcher, const struct spec_timeouts *timeouts,
                 int64_t since_ms, int64_t now, int64_t *ret_again_ms, struct drarun_error *err)
{
    int64_t limit = 0;
    struct drarun_error why = {0};
    CLEANUP(waiting_launcher_done) struct waiting_launcher waits;
    follow_pod_waits(launcher->pod, &waits);
    if (!waits.text || !waits.fails)
        return 0;
    int rc = follow_pod_judge(launcher->pod, timeouts, now - since_ms, &limit, &why);
    if (rc == 0)
        *ret_again_ms = limit ? since_ms + limit : 0;
    else if (rc == -ETIME)
        return error_kind(err, why.kind, ETIME, "%s: %s", why.text, waits.text);
    else
        return error_kind(err, why.kind, ECHILD, "%s", why.text);
    return 0;
}

int follow_launcher_starts(struct follow_launcher *launcher, const struct spec_timeouts *timeouts,
                           int64_t since_ms, int64_t now, int64_t *ret_again_ms,
                           struct drarun_error *err)
{
    *ret_again_ms = 0;
    if (now - since_ms < EVENTS_MS) {
        *ret_again_ms = since_ms + EVENTS_MS;
        return 0;
    }
    if (!launcher->events)
        watch_events(launcher);
    if (now - since_ms < FOLLOW_WAITED_MS) {
        *ret_again_ms = since_ms + FOLLOW_WAITED_MS;
        return 0;
    }
    tell(launcher);
    return judge(launcher, timeouts, since_ms, now, ret_again_ms, err);
}

/* ---- one that is silent ---- */

static void say(const struct follow_launcher *launcher, struct buf *text)
{
    if (text->data && !text->failed)
        launcher->say(launcher->arg, text->data);
    buf_done(text);
}

static void say_renewed(const struct follow_launcher *launcher, const char *holder)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "launcher %s renews its Lease again", holder);
    say(launcher, &text);
}

/* silence: of the Lease; taken over. */
static void take(struct follow_launcher *launcher, struct launcher_silence *silence, bool silent)
{
    int64_t now = clock_ms();
    if (silent && !launcher->silent_since_ms)
        launcher->silent_since_ms = now;
    launcher->silent = silent && now - launcher->silent_since_ms >= CONFIRM_MS;
    if (!silent && silence->holder) {
        bool same =
            launcher->silence.holder && strcmp(launcher->silence.holder, silence->holder) == 0;
        if (launcher->said_silent && same)
            say_renewed(launcher, silence->holder);
        launcher->said_silent = launcher->said_lost = false;
        launcher->silent_since_ms = 0;
    }
    bool usual = !silent && silence->holder;
    launcher->ask_ms = now + (usual    ? LAUNCHER_SILENT_MS - silence->silent_ms + 1000
                              : silent ? CONFIRM_MS
                                       : AGAIN_MS);
    launcher_silence_done(&launcher->silence);
    launcher->silence = *silence;
}

static void on_lease(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct follow_launcher *launcher = arg;
    struct launcher_silence silence = {0};
    int64_t now = kube_client_now(launcher->client);
    launcher->asking = NULL;
    if (err) {
        log_verbose("cannot check whether the launcher renews its Lease: %s", err->text);
        launcher->ask_ms = clock_ms() + AGAIN_MS;
        launcher->silent_since_ms = 0;
        launcher->silent = false;
    } else {
        bool silent = now && launcher_silence_of_lease(answer->body, now, &silence);
        take(launcher, &silence, silent);
    }
    launcher->changed(launcher->arg);
}

static void ask(struct follow_launcher *launcher)
{
    struct drarun_error err = {0};
    const struct kube_target target = {.resource = &kube_leases,
                                       .namespace_ = launcher->pod->namespace,
                                       .name = launcher->pod->job};
    if (kube_get(launcher->client, &target, on_lease, launcher, &launcher->asking, &err) < 0)
        launcher->ask_ms = clock_ms() + AGAIN_MS;
}

static void say_silence(struct follow_launcher *launcher)
{
    const struct launcher_silence *silence = &launcher->silence;
    struct buf text = BUF_INIT;
    if (launcher->said_silent && (launcher->said_lost || !silence->lost))
        return;
    launcher->said_silent = true;
    launcher->said_lost = silence->lost;
    launcher_silence_text(silence, &text);
    if (silence->lost)
        buf_printf(
            &text,
            "; another launcher can take over when the node is back or its Node is deleted; drarun "
            "cancel %s ends the job",
            launcher->pod->job);
    say(launcher, &text);
}

int follow_launcher_answers(struct follow_launcher *launcher, bool final, int64_t now,
                            int64_t *ret_again_ms, struct drarun_error *err)
{
    struct launcher_silence *silence = &launcher->silence;
    struct buf text = BUF_INIT;
    if (!launcher->ask_ms)
        launcher->ask_ms = now + FIRST_MS;
    if (!launcher->asking && now >= launcher->ask_ms)
        ask(launcher);
    *ret_again_ms = launcher->asking ? 0 : launcher->ask_ms;
    if (!launcher->silent)
        return 0;
    launcher_silence_add_pod(silence, follow_pod_find(launcher->pod, silence->holder));
    say_silence(launcher);
    tell_successor(launcher);
    if (!final || !silence->lost || silence->silent_ms < silence->life_ms ||
        now - launcher->silent_since_ms < LAUNCHER_OVER_MS)
        return 0;
    launcher_silence_text(silence, &text);
    int rc = error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EHOSTDOWN, "%s: job %s is over",
                        text.data ? text.data : "the launcher is silent", launcher->pod->job);
    buf_done(&text);
    return rc;
}

void follow_launcher_words(const struct follow_launcher *launcher, struct buf *out)
{
    if (launcher->silent)
        launcher_silence_text(&launcher->silence, out);
}

void follow_launcher_done(struct follow_launcher *launcher)
{
    kube_call_cancel(launcher->asking);
    kube_watch_free(launcher->events);
    launcher_silence_done(&launcher->silence);
    free(launcher->told);
}
