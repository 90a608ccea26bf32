/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/client/heartbeat.h"
#include "launcher/cluster/lead/lost.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define TURN_MS 15000
#define SILENCES 2 /* answers without a new word, until there is no shell */

/* ---- the shell ---- */

static const char *word_of(const json_t *owner)
{
    const json_t *metadata = json_object_get(owner, "metadata");
    const json_t *annotations = json_object_get(metadata, "annotations");
    const char *word = json_string_value(json_object_get(annotations, HEARTBEAT_ANNOTATION));
    return word ? word : "";
}

static void hear(struct lead_allocation *allocation)
{
    allocation->heard_ms = clock_ms();
    allocation->silences = 0;
}

static int64_t patience_ms(const struct lead *lead)
{
    return (int64_t)lead->options->keep_s * 1000;
}

/* Without the API server nobody can be heard. */
static void listen_to_shell(struct lead *lead)
{
    struct lead_allocation *allocation = &lead->allocation;
    const char *word = word_of(board_owner(lead->board));
    struct drarun_error err = {0};
    bool deaf = board_check(lead->board, &err) < 0 || board_trouble(lead->board);
    if (deaf || allocation->heard_ms == 0 || strcmp(word, allocation->heartbeat) != 0)
        hear(allocation);
    snprintf(allocation->heartbeat, sizeof allocation->heartbeat, "%s", word);
}

/* An API server that was away may answer us before it has heard the shell: that gets the time of
 * one more word. */
static void on_word(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct lead *lead = arg;
    struct lead_allocation *allocation = &lead->allocation;
    const char *word = err ? "" : word_of(answer->body);
    bool is_new = strcmp(word, allocation->heartbeat) != 0 && strcmp(word, allocation->asked) != 0;
    allocation->asking = NULL;
    if (err || answer->tries > 1 || is_new)
        hear(allocation);
    else if (++allocation->silences < SILENCES)
        allocation->heard_ms = clock_ms() - patience_ms(lead) + patience_ms(lead) / HEARTBEAT_TIMES;
    snprintf(allocation->asked, sizeof allocation->asked, "%s", word);
    lead->dirty = true;
}

/* The watch brings nothing either while the network to the API server drops what is sent, which it
 * takes longer to find out than a shell may be silent. */
static void ask_for_word(struct lead *lead)
{
    struct lead_allocation *allocation = &lead->allocation;
    struct drarun_error err = {0};
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = lead->options->namespace, .name = lead->spec->name};
    if (!allocation->asking &&
        kube_get(lead->cluster->client, &target, on_word, lead, &allocation->asking, &err) < 0)
        hear(allocation);
}

static bool has_ended(const struct lead_allocation *allocation)
{
    return strcmp(allocation->heartbeat, HEARTBEAT_ENDED) == 0 ||
           strcmp(allocation->asked, HEARTBEAT_ENDED) == 0;
}

void lead_look_for_shell(struct lead *lead)
{
    struct lead_allocation *allocation = &lead->allocation;
    if (lead->options->keep_s == 0 || lead->stop.cancelled || lead->stop.signo)
        return;
    listen_to_shell(lead);
    bool due = clock_ms() - allocation->heard_ms >= patience_ms(lead);
    if (has_ended(allocation)) {
        allocation->shell_ended = true;
    } else if (!due) {
        return;
    } else if (allocation->silences < SILENCES) {
        ask_for_word(lead);
        return;
    } else {
        log_note("no heartbeat from the allocation's shell for %u s: its workers are deleted",
                 lead->options->keep_s);
    }
    lead->stop.cancelled = !allocation->shell_ended;
    lead->stop.signo = SIGHUP;
}

/* ---- the workers ---- */

static bool look_at_worker(uint32_t worker, const struct pod_state *state, void *arg)
{
    lost_look(arg, worker, state);
    return true;
}

/* Of what changed while they were checked the job engine was told. */
static void look_at_all(const struct lead *lead, struct lost *lost)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 0; i < lead->spec->workers; i++)
        lost_look(lost, i, &workers[i]);
}

/* Who is lost is known to the status; the others stay until the shell ends. */
static void look_at_workers(struct lead *lead, struct lost *lost)
{
    board_each_changed(lead->board, lead->render.attempt, look_at_worker, lost);
    if (lost_tell(lost, board_workers(lead->board, lead->render.attempt)))
        lead_tell(lead, NULL);
}

/* ---- from begin to end ---- */

static void turn(struct lead *lead, struct lost *lost, int64_t limit)
{
    int64_t left = limit == INT64_MAX ? TURN_MS : limit - lead_now();
    lead_look_for_shell(lead);
    look_at_workers(lead, lost);
    int64_t silent = lead->allocation.heard_ms + patience_ms(lead) - clock_ms();
    if (!lead->allocation.asking)
        left = left < silent ? left : silent;
    if (!lead_is_stopped(lead) && left > 0)
        cluster_turn(lead->cluster, left < TURN_MS ? left : TURN_MS);
}

int lead_keep(struct lead *lead, struct drarun_error *err)
{
    CLEANUP(lost_done) struct lost lost;
    int64_t limit = gang_total_end(&lead->gang, lead->spec->timeouts.total);
    if (lost_init(&lost, lead->spec->workers) < 0)
        return error_set(err, ENOMEM, "out of memory");
    lead_tell(lead, NULL);
    lead_event(lead, REASON_STARTED, "all workers are up and kept for one job after another");
    log_verbose("%u worker%s kept", lead->spec->workers,
                lead->spec->workers == 1 ? " is" : "s are");
    look_at_all(lead, &lost);
    while (!lead_is_stopped(lead) && lead_now() < limit)
        turn(lead, &lost, limit);
    if (lead->allocation.shell_ended) {
        lead->stop.signo = 0;
        lead->status = 0;
        lead->attempt.report = json_pack("{s:i}", "status", 0);
        return 0;
    }
    if (lead_is_stopped(lead))
        return -EINTR;
    return error_kind(err, DRARUN_ERR_TIMEOUT, ETIMEDOUT,
                      "the allocation did not end within %" PRId64 " s (spec.timeouts.total)",
                      lead->spec->timeouts.total / 1000);
}
