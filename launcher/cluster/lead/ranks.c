/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "jobs/derive/inventory/allocation.h"
#include "launcher/cluster/lead/private.h"
#include "launcher/cluster/lead/request.h"
#include "launcher/job/report.h"
#include "launcher/streams/console.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define FAILURES_KEPT 100 /* in the status, which an object of the cluster holds */

/* ---- while they run ---- */

/* Every agent has said hello and what it holds. */
static int on_prepare(void *arg, struct job *job, struct drarun_error *err)
{
    struct lead *lead = arg;
    int rc = lead_decide(lead, lead->spec->workers, err);
    if (rc == 0 && lead->decision.action == GANG_FAIL) {
        *err = lead->decision.error;
        rc = -err->code;
    } else if (rc == 0 && lead->decision.action != GANG_START) {
        rc = error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ECANCELED,
                        "a worker was lost while the agents were contacted (%s)",
                        lead->decision.event);
    }
    if (rc == 0)
        rc = lead_plan(lead, job, err);
    return rc;
}

/* What the NICs of the present attempt's workers were found to be. */
static void keep_fabric(struct lead *lead, const struct job *job)
{
    json_t *fabric = job_fabric(job);
    if (!fabric)
        return;
    json_decref(lead->attempt.fabric);
    lead->attempt.fabric = fabric;
}

/* The checks are over: the ranks start next, or the allocation is ready for use. */
static int on_checked(void *arg, const struct job *job, struct drarun_error *err)
{
    struct lead *lead = arg;
    keep_fabric(lead, job);
    if (lead->options->keep_s == 0)
        return 0;
    lead->allocation.checked = true;
    return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED, "the workers are kept");
}

static void on_started(void *arg)
{
    struct lead *lead = arg;
    char text[96];
    snprintf(text, sizeof text, "%u ranks on %u workers run (attempt %u)", lead->attempt.ranks,
             lead->spec->workers, lead->render.attempt);
    lead_tell(lead, NULL);
    lead_event(lead, REASON_STARTED, text);
    lead_watch_vitals(lead);
}

static bool look_at_rank(uint32_t worker, const struct pod_state *state, void *arg)
{
    struct lead *lead = arg;
    const struct cause_pod pod = {
        .worker = worker,
        .pod = state->name,
        .node = state->node,
        .end = state->end != POD_END_NONE ? state->end : POD_END_DELETED,
        .message = state->message,
        .exit_code = state->exit_code,
        .deleting = state->deleting,
    };
    if (state->phase == POD_ABSENT || state->phase == POD_ENDED)
        return job_pod_ended(lead->job, &pod);
    if (state->disrupted || state->deleting)
        job_pod_leaves(lead->job, &pod);
    return true;
}

/* News of the pods under running ranks. */
void lead_look_at_ranks(struct lead *lead)
{
    board_each_changed(lead->board, lead->render.attempt, look_at_rank, lead);
}

/* ---- from begin to end ---- */

/* Of a worker of each role. */
static void count_gpus(const struct lead *lead, uint32_t ret_gpus[SPEC_ROLES_MAX])
{
    CLEANUP(json_decrefp) json_t *claims = board_claims(lead->board, lead->render.attempt);
    for (uint32_t r = 0; r < lead->spec->role_count; r++) {
        const struct spec_role *role = &lead->spec->roles[r];
        ret_gpus[r] = role->gpus.count > 0
                          ? role->gpus.count
                          : allocation_count_gpus(json_array_get(claims, role->first));
    }
}

static uint32_t count_ranks(const struct ranks *ranks)
{
    uint32_t count = 0;
    for (size_t i = 0; i < ranks->count; i++)
        count += ranks->role_ranks[i];
    return count;
}

/* Which workers and ranks are whose, for the status; NULL for a document without roles. */
static json_t *roles_json(const struct job_spec *spec, const struct ranks *ranks)
{
    json_t *list = spec_has_roles(spec) ? json_array() : NULL;
    for (uint32_t r = 0; list && r < spec->role_count; r++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i}", "name", spec->roles[r].name,
                                              "first", (int)spec->roles[r].first, "workers",
                                              (int)spec->roles[r].workers, "ranks",
                                              (int)ranks->role_ranks[r]));
    return list;
}

/* On which node it happened, where a rank's end is told by its pod's name. */
static void name_node(const struct lead *lead, json_t *cause)
{
    const json_t *worker = json_object_get(cause, "worker");
    json_int_t index = json_integer_value(worker);
    if (!json_is_integer(worker) || index < 0 || index >= lead->spec->workers)
        return;
    const char *node = board_workers(lead->board, lead->render.attempt)[index].node;
    if (node && json_object_set_new(cause, "node", json_string(node)) < 0)
        log_error("out of memory: the report does not name the node");
}

static void cut_failures(json_t *report)
{
    json_t *failures = json_object_get(report, "failures");
    while (json_array_size(failures) > FAILURES_KEPT)
        json_array_remove(failures, json_array_size(failures) - 1);
}

static void keep_report(struct lead *lead, const struct job_request *request)
{
    struct drarun_error err = {0};
    const struct cause *cause = job_cause(lead->job);
    lead->status = cause_status(cause);
    keep_fabric(lead, lead->job);
    json_decref(lead->attempt.report);
    lead->attempt.report = cause_json(cause);
    cut_failures(lead->attempt.report);
    name_node(lead, json_object_get(lead->attempt.report, "cause"));
    lead_note_end(lead, lead->attempt.report, cause_restart(cause));
    /* our own pod is taken away: the next launcher ends this attempt and may begin another */
    if (!lead->options->here && !lead->stop.cancelled && cause_kind(cause) == CAUSE_INTERRUPTED &&
        lead->status == 128 + SIGTERM)
        lead->stop.signo = SIGTERM;
    if (!lead->options->framed && report_show(request, lead->job, &err) < 0)
        log_error("%s", err.text);
}

/* Of the job's total; 0: it has no limit. */
static int64_t time_left(const struct lead *lead)
{
    int64_t end = gang_total_end(&lead->gang, lead->spec->timeouts.total), now = lead_now();
    if (end == INT64_MAX)
        return 0;
    return end > now ? end - now : 1;
}

/* The engine has its own. */
static void leave_console(struct lead *lead)
{
    if (lead->options->here)
        signals_free(TAKE_PTR(lead->console.signals));
    else
        signals_pause(lead->console.signals);
    status_line_free(TAKE_PTR(lead->console.line));
}

/* It may have come too late to be the cause of the attempt's end. */
static void take_signal(struct lead *lead, int signo)
{
    struct lead_stop *stop = &lead->stop;
    if (signo == 0)
        return;
    if (!stop->signal_ms)
        stop->signal_ms = clock_ms();
    if (!stop->cancelled && !lead->options->here && signo == SIGTERM)
        stop->late = signo;
    else if (!stop->cancelled)
        stop->signo = signo;
}

static int run(struct lead *lead, struct ranks *ranks, struct console *console,
               struct drarun_error *err)
{
    signals_take(lead->console.signals); /* since the last turn of the loop */
    if (lead_is_stopped(lead))
        return -EINTR;
    leave_console(lead);
    lead->job = job_new(&ranks->request, console, -1, NULL, err);
    if (!lead->job)
        return -err->code;
    int64_t began_ms = clock_ms();
    job_run(lead->job);
    lead->attempt.ran_ms = clock_ms() - began_ms;
    lead_leave_vitals(lead);
    if (!lead->allocation.checked)
        keep_report(lead, &ranks->request);
    take_signal(lead, job_end_signal(lead->job));
    job_free(TAKE_PTR(lead->job));
    return 0;
}

int lead_run_ranks(struct lead *lead, struct drarun_error *err)
{
    struct ranks ranks;
    int rc = lead_order_ranks(lead, err);
    if (rc < 0)
        return rc;
    uint32_t gpus[SPEC_ROLES_MAX];
    count_gpus(lead, gpus);
    const struct ranks_facts facts = {
        .spec = lead->spec,
        .workers = board_workers(lead->board, lead->render.attempt),
        .gpus = gpus,
        .args = lead->options->args,
    };
    const struct request_pods pods = {
        .base = lead->cluster->base,
        .key = &lead->key.tls,
        .uid = lead->owner_uid,
        .attempt = lead->render.attempt,
        .rank_order = lead->domain.rank_order,
        .generation = lease_generation(lead->lease),
        .prepare = on_prepare,
        .checked = on_checked,
        .started = on_started,
        .vitals = lead_take_vitals,
        .arg = lead,
    };
    const struct console_options console_options = {
        .label = lead->options->label,
        .framed = lead->options->framed ? &lead->log : NULL,
        .reader = lead->options->reader,
        .quiet = lead->options->quiet,
    };
    CLEANUP(console_freep) struct console *console = console_new(&console_options);
    rc =
        console ? ranks_build(&facts, &pods, &ranks, err) : error_set(err, ENOMEM, "out of memory");
    if (rc < 0)
        return rc;
    lead->attempt.ranks = count_ranks(&ranks);
    json_decref(lead->attempt.roles);
    lead->attempt.roles = roles_json(lead->spec, &ranks);
    lead->log.who.attempt = lead->render.attempt;
    ranks.request.json = lead->options->json;
    ranks.request.report_path = lead->options->report_path;
    ranks.pods.total_ms = lead->spec->timeouts.total;
    ranks.request.timeout_ms = time_left(lead);
    rc = run(lead, &ranks, console, err);
    ranks_done(&ranks);
    return rc;
}
