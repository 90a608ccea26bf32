/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "jobs/plan.h"
#include "jobs/preflight.h"
#include "jobs/profiles.h"
#include "launcher/cluster/lead_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct planning {
    struct preflight_worker *inspected;
    struct profiles profiles;
    struct plan_worker_input *workers;
    json_t *claims; /* by worker */
    struct plan plan;
    bool have_profiles, planned;
};

static void done(struct planning *p)
{
    if (p->planned)
        plan_done(&p->plan);
    if (p->have_profiles)
        profiles_done(&p->profiles);
    json_decref(p->claims);
    free(p->workers);
    free(p->inspected);
}

static int collect(struct lead *lead, const struct job *job, struct planning *p,
                   struct drarun_error *err)
{
    uint32_t count = lead->spec->workers;
    int rc = profiles_builtin(&p->profiles, err);
    p->have_profiles = rc == 0;
    p->workers = calloc(count, sizeof *p->workers);
    p->inspected = calloc(count, sizeof *p->inspected);
    p->claims = board_claims(lead->board, lead->render.attempt);
    if (rc < 0)
        return rc;
    if (!p->workers || !p->inspected || !p->claims)
        return error_set(err, ENOMEM, "out of memory");
    rc = lead_add_channels(lead, p->claims, err);
    if (rc < 0)
        return rc;
    const struct pod_state *states = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *claims = json_array_get(p->claims, i);
        p->workers[i] = (struct plan_worker_input){
            .pod = states[i].name,
            .node = states[i].node,
            .claims = json_array_size(claims) > 0 ? claims : NULL,
            .probe = json_object_get(job_inspection(job, i), "probe"),
            .clique = lead->cliques ? lead->cliques[i] : NULL,
        };
        p->inspected[i] = (struct preflight_worker){
            .pod = states[i].name, .node = states[i].node, .inspection = job_inspection(job, i)};
    }
    return 0;
}

/* What the user can do about it, once a job. */
static void say_unknown(struct lead *lead)
{
    const char *why = facts_missing(lead->facts);
    if (lead->unknown_told)
        return;
    lead->unknown_told = true;
    log_note(
        "the cluster's ResourceSlices are not known%s%s: each worker's devices are taken to be "
        "those that it shows; drarun install --cluster-role gives the right to read them",
        why[0] ? ": " : "", why);
}

static int build(struct lead *lead, struct planning *p, struct drarun_error *err)
{
    struct plan_input input = plan_input_of(lead->spec);
    input.slices = lead->facts ? facts_slices(lead->facts) : NULL;
    input.slices_unknown = lead->facts && !input.slices;
    input.node_labels = lead->facts ? facts_node_labels(lead->facts) : NULL;
    input.profiles = &p->profiles;
    input.workers = p->workers;
    input.rank_order = lead->rank_order;
    input.worker_count = lead->spec->workers;
    if (input.slices_unknown)
        say_unknown(lead);
    int rc = plan_build(&input, &p->plan, err);
    p->planned = rc == 0;
    return rc < 0 ? error_prefix(err, "plan") : 0;
}

static bool has_devices(const struct job_spec *spec)
{
    return claims_wanted(spec) || spec->gpus.resource || spec->nics.resource;
}

/* Every refusal and every warning is said; the first refusal is the job's end. */
static int check(const struct lead *lead, const struct planning *p, struct drarun_error *err)
{
    const struct preflight_input input = {
        .spec = lead->spec,
        .plan = &p->plan,
        .workers = p->inspected,
        .count = lead->spec->workers,
    };
    struct preflight preflight;
    int rc = preflight_check(&input, &preflight, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < preflight.count; i++) {
        struct buf line = BUF_INIT;
        preflight_line(&preflight.list[i], &line);
        if (line.data && (i > 0 || !preflight.list[i].refusal)) /* that one is the error */
            log_note("%s", line.data);
        buf_done(&line);
    }
    rc = preflight_result(&preflight, err);
    preflight_done(&preflight);
    return rc;
}

static void say_warnings(const struct plan *plan)
{
    for (size_t i = 0; i < plan->warnings.count; i++)
        log_note("%s: %s", warning_name(plan->warnings.list[i].code),
                 plan->warnings.list[i].detail);
}

int lead_plan(struct lead *lead, struct job *job, struct drarun_error *err)
{
    struct planning p = {0};
    int rc = collect(lead, job, &p, err);
    if (rc == 0)
        rc = build(lead, &p, err);
    if (rc == 0 && p.plan.refusal.code)
        rc = error_kind(err, DRARUN_ERR_PREFLIGHT, EINVAL, "refused: %s: %s",
                        warning_name(p.plan.refusal.code), p.plan.refusal.detail);
    if (rc == 0) {
        if (has_devices(lead->spec))
            say_warnings(&p.plan);
        rc = check(lead, &p, err);
    }
    if (rc == 0)
        rc = job_use_plan(job, &p.plan, err);
    done(&p);
    return rc;
}
