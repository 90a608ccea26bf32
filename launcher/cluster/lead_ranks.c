/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "launcher/cluster/lead_private.h"
#include "launcher/cluster/ranks.h"
#include "launcher/report.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

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
                        "a worker was lost while the agents were asked (%s)", lead->decision.event);
    }
    return rc < 0 ? rc : lead_plan(lead, job, err);
}

static void on_started(void *arg)
{
    lead_tell(arg, NULL);
}

static void say_end(const struct pod_state *worker, struct drarun_error *err)
{
    error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ECANCELED, "its pod %s: %s%s%s",
               worker->deleting ? "is being deleted" : "has ended", pod_end_name(worker->end),
               worker->message ? ": " : "", worker->message ? worker->message : "");
}

/* News of the pods under running ranks. */
static void look_at_pods(struct lead *lead)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 0; i < lead->spec->workers; i++) {
        struct drarun_error why = {0};
        const struct pod_state *worker = &workers[i];
        if (worker->phase == POD_ABSENT)
            error_kind(&why, DRARUN_ERR_INFRASTRUCTURE, ECANCELED, "its pod was deleted");
        else if (worker->phase == POD_ENDED && worker->end != POD_END_EXIT)
            say_end(worker, &why);
        else if (worker->disrupted || worker->deleting)
            lead->signo = lead->signo ? lead->signo : -SIGTERM;
        if (why.code)
            job_pod_ended(lead->job, i, &why);
    }
}

void lead_look_at_ranks(struct lead *lead)
{
    int asked = lead->signo;
    if (lead->lost.code)
        job_stop(lead->job, &lead->lost);
    look_at_pods(lead);
    if (lead->signo != asked && lead->signo < 0) {
        log_note("a worker is being taken away: every rank gets SIGTERM");
        job_interrupt(lead->job, -lead->signo);
    }
}

/* ---- from begin to end ---- */

/* Devices of the requests gpu and gpu-I of an allocated claim. */
static uint32_t count_gpus(const json_t *claims)
{
    uint32_t count = 0;
    size_t i, k;
    json_t *claim, *result;
    json_array_foreach((json_t *)claims, i, claim)
    {
        const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");
        json_array_foreach(json_object_get(json_object_get(allocation, "devices"), "results"), k,
                           result)
        {
            const char *request = json_string_value(json_object_get(result, "request"));
            count += request && strncmp(request, "gpu", 3) == 0;
        }
    }
    return count;
}

static uint32_t gpus_of_a_worker(const struct lead *lead)
{
    if (lead->spec->gpus.count > 0)
        return lead->spec->gpus.count;
    CLEANUP(json_decrefp) json_t *claims = board_claims(lead->board, lead->render.attempt);
    return count_gpus(json_array_get(claims, 0));
}

static void keep_report(struct lead *lead, const struct job_request *request)
{
    struct drarun_error err = {0};
    struct job_facts facts;
    const struct cause *cause = job_cause(lead->job);
    job_facts(lead->job, &facts);
    lead->status = cause_status(cause);
    json_decref(lead->report);
    lead->report = cause_json(cause);
    if (!lead->options->framed && report_show(request, &facts, cause, &err) < 0)
        log_error("%s", err.text);
}

static int run(struct lead *lead, struct ranks *ranks, struct drarun_error *err)
{
    signals_free(TAKE_PTR(lead->signals)); /* the engine has its own */
    status_line_free(TAKE_PTR(lead->line));
    lead->job = job_new(&ranks->request, NULL, err);
    if (!lead->job)
        return -err->code;
    job_run(lead->job);
    keep_report(lead, &ranks->request);
    job_free(TAKE_PTR(lead->job));
    return 0;
}

int lead_run_ranks(struct lead *lead, struct drarun_error *err)
{
    struct ranks ranks;
    if (lead->facts)
        facts_wait(lead->facts);
    const struct ranks_facts facts = {
        .spec = lead->spec,
        .workers = board_workers(lead->board, lead->render.attempt),
        .gpus = gpus_of_a_worker(lead),
        .args = lead->options->args,
    };
    const struct request_pods pods = {
        .base = lead->cluster->base,
        .key = &lead->key,
        .uid = lead->owner_uid,
        .attempt = lead->render.attempt,
        .generation = lease_generation(lead->lease),
        .prepare = on_prepare,
        .started = on_started,
        .arg = lead,
    };
    int rc = ranks_build(&facts, &pods, &ranks, err);
    if (rc < 0)
        return rc;
    lead->ranks = ranks.request.per_worker * lead->spec->workers;
    ranks.request.framed = lead->options->framed;
    ranks.request.label = lead->options->label;
    ranks.request.quiet = lead->options->quiet;
    ranks.request.json = lead->options->json;
    ranks.request.report_path = lead->options->report_path;
    rc = run(lead, &ranks, err);
    ranks_done(&ranks);
    return rc;
}
