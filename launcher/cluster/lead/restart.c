/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/avoid_node.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define RELEASE_MS 120000 /* beyond a pod's own grace period nothing of ours holds it */
#define BEYOND_GRACE_MS 10000

#define SHORT_MS 10000 /* what ends sooner is not tried again at once, time and again */

/* Of an attempt whose ranks never ran; the gang has its own tries. */
static struct failure_decision decide_unrun(const struct lead *lead, const struct drarun_error *err)
{
    return (struct failure_decision){
        .restart = err->kind == DRARUN_ERR_INFRASTRUCTURE,
        .count = lead->spec->failure.apart ? FAILURE_COUNT_INFRASTRUCTURE : FAILURE_COUNT_RESTARTS,
        .rule = -1,
    };
}

bool lead_may_restart(struct lead *lead, int rc, const struct drarun_error *err)
{
    struct lead_restarts *restarts = &lead->restarts;
    const struct failure_decision *next = &restarts->next;
    if (lead_is_stopped(lead) || lead->stop.cancelled || (rc == 0 && lead->status == 0))
        return false;
    if (rc < 0)
        restarts->next = decide_unrun(lead, err);
    if (next->rule >= 0 && !next->restart)
        log_note("failurePolicy.rules[%d] ends the job", next->rule);
    return next->restart &&
           restarts->counted[next->count] < failure_allowed(lead->spec, next->count);
}

/* A pod that has ended, and a rank's that names no other. */
static const char *node_of(const json_t *cause)
{
    const char *node = json_string_value(json_object_get(cause, "node"));
    bool pod = json_object_get(cause, "end") != NULL;
    return node || !pod ? node : json_string_value(json_object_get(cause, "host"));
}

/* The oldest one makes room: it may have been repaired meanwhile, and fails again where not. */
static void avoid(struct strlist *nodes, const char *node)
{
    if (strlist_has(nodes, node))
        return;
    if (nodes->count == AVOID_NODES_MAX)
        strlist_remove(nodes, 0);
    strlist_add(nodes, node);
}

void lead_note_end(struct lead *lead, const json_t *end, struct cause_restart table)
{
    struct lead_restarts *restarts = &lead->restarts;
    const json_t *cause = json_object_get(end, "cause");
    const char *how = json_string_value(json_object_get(cause, "end")), *node = node_of(cause);
    restarts->next = failure_decide(&lead->spec->failure, end, table);
    if (node && restarts->next.avoid_node)
        avoid(&restarts->avoid, node);
    if (node && how && strcmp(how, pod_end_name(POD_END_NODE_LOST)) == 0 &&
        !strlist_has(&restarts->silent, node))
        strlist_add(&restarts->silent, node);
}

/* ---- release ---- */

int lead_delete_silent(struct lead *lead, struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < lead->restarts.silent.count; i++)
        rc = delete_pods(lead->cluster, lead->spec, lead->options->namespace,
                         lead->restarts.silent.items[i], true, err);
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
                            "%zu pods and claims of the job still exist after %" PRId64
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
    log_note("%s: they are deleted from the API without waiting for their nodes", late.text);
    rc = delete_pods(lead->cluster, lead->spec, namespace, NULL, true, err);
    return rc < 0 ? rc : wait_until_gone(lead, !keep_claims, RELEASE_MS, err);
}

/* ---- the next one ---- */

void lead_avoid_nodes(struct lead *lead)
{
    lead->render.avoid = (const char *const *)lead->restarts.avoid.items;
    lead->render.avoid_count = lead->restarts.avoid.count;
}

int lead_next_attempt(struct lead *lead, struct drarun_error *err)
{
    bool keep = !lead->restarts.next.new_claims && lead->spec->claims == SPEC_CLAIMS_DIRECT;
    int rc = release(lead, keep, err);
    if (rc < 0)
        return rc;
    if (lead_is_stopped(lead))
        return -EINTR;
    lead->render.attempt++;
    lead_avoid_nodes(lead);
    lead->render.step = keep ? lead->gang.step : 0;
    gang_init_next(&lead->gang, gang_seed(lead->owner_uid, lead->render.attempt), lead_now());
    lead->gang.step = lead->render.step;
    json_decref(lead->attempt.report);
    lead->attempt.report = NULL;
    json_decref(TAKE_PTR(lead->attempt.fabric));
    lead_tell(lead, NULL);
    return lead_create(lead, err);
}

static void add_count(const struct lead *lead, struct buf *out)
{
    static const char *const names[] = {[FAILURE_COUNT_RESTARTS] = "restarts",
                                        [FAILURE_COUNT_INFRASTRUCTURE] = "infrastructureRestarts"};
    enum failure_count count = lead->restarts.next.count;
    if (count == FAILURE_COUNT_NONE)
        buf_add_str(out, "does not count");
    else
        buf_printf(out, "%u of %u %s", lead->restarts.counted[count],
                   failure_allowed(lead->spec, count), names[count]);
    if (lead->restarts.next.rule >= 0)
        buf_printf(out, ", by failurePolicy.rules[%d]", lead->restarts.next.rule);
}

static void add_restart(const struct lead *lead, const char *cause, struct buf *out)
{
    buf_printf(out, "attempt %u ended with %d: %s%sattempt %u follows (", lead->render.attempt,
               lead->status, cause ? cause : "", cause ? "; " : "", lead->render.attempt + 1);
    add_count(lead, out);
    buf_add_str(out, ")");
}

/* Without a report the next launcher would not know that the attempt is over, and wait for it. */
void lead_end_unrun(struct lead *lead, const struct drarun_error *err)
{
    lead->status = error_exit_status(err->kind);
    lead->attempt.report = lead_failure_report(lead, err);
    if (!lead->options->framed)
        log_error("%s", err->text);
}

/* From a pod nothing else says why it ended; here that was done. */
static void say_restart(struct lead *lead)
{
    const json_t *cause = json_object_get(lead->attempt.report, "cause");
    const char *why = json_string_value(json_object_get(cause, "text"));
    struct buf whole = BUF_INIT, brief = BUF_INIT;
    add_restart(lead, why, &whole);
    add_restart(lead, NULL, &brief);
    if (whole.data && brief.data) {
        log_note("%s", lead->options->framed ? whole.data : brief.data);
        lead_event(lead, REASON_RESTARTED, whole.data);
    }
    buf_done(&whole);
    buf_done(&brief);
}

/* Nothing bounds the attempts that do not count. */
static void pause_before_next(struct lead *lead)
{
    int64_t end = clock_ms() + SHORT_MS;
    log_note("attempt %u waits for %d s, because the last one ended too soon",
             lead->render.attempt + 1, SHORT_MS / 1000);
    while (!lead_is_stopped(lead) && clock_ms() < end)
        cluster_turn(lead->cluster, end - clock_ms());
}

int lead_restart(struct lead *lead, struct drarun_error *err)
{
    lead->restarts.count++;
    lead->restarts.counted[lead->restarts.next.count]++;
    say_restart(lead);
    lead_tell(lead, NULL); /* how this one ended: a line of the history */
    if (lead->restarts.next.count == FAILURE_COUNT_NONE && lead->attempt.ran_ms < SHORT_MS)
        pause_before_next(lead);
    return lead_is_stopped(lead) ? -EINTR : lead_next_attempt(lead, err);
}
