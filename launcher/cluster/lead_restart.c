/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launcher/cluster/create.h"
#include "launcher/cluster/lead_private.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define RELEASE_MS 120000 /* beyond a pod's own grace period nothing of ours holds it */
#define BEYOND_GRACE_MS 10000

bool lead_may_restart(const struct lead *lead, int rc, const struct drarun_error *err)
{
    if (lead_is_stopped(lead) || lead->cancelled || lead->restarts >= lead->spec->restarts)
        return false;
    if (rc < 0) /* it never ran: the gang has its own tries */
        return err->kind == DRARUN_ERR_INFRASTRUCTURE;
    return lead->status != 0 && lead->next.retry;
}

void lead_note_cause(struct lead *lead, const json_t *cause)
{
    const char *node = json_string_value(json_object_get(cause, "host"));
    const char *end = json_string_value(json_object_get(cause, "end"));
    if (!node || !end)
        return;
    if (cause_restart_told(cause).avoid_node && !strlist_has(&lead->avoid, node))
        strlist_add(&lead->avoid, node);
    if (strcmp(end, pod_end_name(POD_END_NODE_LOST)) == 0 && !strlist_has(&lead->silent, node))
        strlist_add(&lead->silent, node);
}

/* ---- release ---- */

int lead_delete_silent(struct lead *lead, struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < lead->silent.count; i++)
        rc = delete_pods(lead->cluster, lead->spec, lead->options->namespace, lead->silent.items[i],
                         true, err);
    return rc;
}

static int wait_until_gone(struct lead *lead, bool claims, int64_t ms, struct drarun_error *err)
{
    int64_t end = clock_ms() + ms;
    while (board_remains(lead->board, claims) > 0 && clock_ms() < end) {
        if (lead_is_stopped(lead))
            return -EINTR;
        cluster_turn(lead->cluster, end - clock_ms());
    }
    return board_remains(lead->board, claims) == 0
               ? 0
               : error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                            "%zu pods and claims of the job are not gone after %" PRId64
                            " s: their nodes may be lost",
                            board_remains(lead->board, claims), ms / 1000);
}

/* Pods of all attempts go, claims too unless the next attempt can use them. */
static int release(struct lead *lead, bool keep_claims, struct drarun_error *err)
{
    const char *namespace = lead->options->namespace;
    struct drarun_error late = {0};
    int rc = keep_claims ? delete_pods(lead->cluster, lead->spec, namespace, NULL, false, err)
                         : delete_workers(lead->cluster, lead->spec, namespace, err);
    if (rc == 0)
        rc = lead_delete_silent(lead, err);
    if (rc < 0)
        return rc;
    rc =
        wait_until_gone(lead, !keep_claims, job_spec_grace_ms(lead->spec) + BEYOND_GRACE_MS, &late);
    if (rc != -ETIMEDOUT)
        return rc;
    log_note("%s: they are taken off the API without their nodes' word", late.text);
    rc = delete_pods(lead->cluster, lead->spec, namespace, NULL, true, err);
    return rc < 0 ? rc : wait_until_gone(lead, !keep_claims, RELEASE_MS, err);
}

/* ---- the next one ---- */

void lead_avoid_nodes(struct lead *lead)
{
    lead->render.avoid = (const char *const *)lead->avoid.items;
    lead->render.avoid_count = lead->avoid.count;
}

int lead_next_attempt(struct lead *lead, struct drarun_error *err)
{
    bool keep = !lead->next.new_claims && lead->spec->claims == SPEC_CLAIMS_DIRECT;
    int rc = release(lead, keep, err);
    if (rc < 0)
        return rc;
    struct gang before = lead->gang;
    lead->render.attempt++;
    lead_avoid_nodes(lead);
    lead->render.step = keep ? before.step : 0;
    gang_init(&lead->gang, gang_seed(lead->owner_uid, lead->render.attempt), lead_now());
    lead->gang.since_ms = before.since_ms;
    lead->gang.spent_ms[GANG_CLOCK_QUEUE] = before.spent_ms[GANG_CLOCK_QUEUE];
    lead->gang.step = lead->render.step;
    json_decref(lead->report);
    lead->report = NULL;
    json_decref(TAKE_PTR(lead->fabric));
    lead_tell(lead, NULL);
    return create_workers(lead->cluster, lead->spec, &lead->render, err);
}

static void add_restart(const struct lead *lead, const char *cause, struct buf *out)
{
    buf_printf(out, "attempt %u ended with %d: %s%sattempt %u follows (%u of %u restarts)",
               lead->render.attempt, lead->status, cause ? cause : "", cause ? "; " : "",
               lead->render.attempt + 1, lead->restarts, lead->spec->restarts);
}

/* From a pod nothing else says why it ended; here the job engine has done so. */
static void say_restart(struct lead *lead)
{
    const json_t *cause = json_object_get(lead->report, "cause");
    const char *why = json_string_value(json_object_get(cause, "text"));
    struct buf whole = BUF_INIT, brief = BUF_INIT;
    add_restart(lead, why, &whole);
    add_restart(lead, NULL, &brief);
    if (whole.data && brief.data) {
        log_note("%s", lead->options->framed ? whole.data : brief.data);
        lead_event(lead, "Restarted", whole.data);
    }
    buf_done(&whole);
    buf_done(&brief);
}

int lead_restart(struct lead *lead, struct drarun_error *err)
{
    lead->restarts++;
    say_restart(lead);
    lead_tell(lead, NULL); /* how this one ended: a line of the history */
    return lead_next_attempt(lead, err);
}
