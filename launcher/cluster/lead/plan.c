/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "launcher/cluster/lead/private.h"
#include "launcher/job/plan.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* claims: by worker; borrowed by the result. */
static void collect(struct lead *lead, const json_t *all, struct plan_worker_input *workers)
{
    const struct pod_state *states = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 0; i < lead->spec->workers; i++) {
        const json_t *claims = json_array_get(all, i);
        workers[i] = (struct plan_worker_input){
            .pod = states[i].name,
            .node = states[i].node,
            .claims = json_array_size(claims) > 0 ? claims : NULL,
            .clique = lead->domain.cliques ? lead->domain.cliques[i] : NULL,
        };
    }
}

/* What the user can do about it, once a job. */
static void say_unknown(struct lead *lead)
{
    const char *why = facts_missing(lead->facts);
    if (lead->told.unknown_slices)
        return;
    lead->told.unknown_slices = true;
    log_note("the cluster's ResourceSlices are not known%s%s: each worker's devices are read from "
             "its pod instead; drarun install --cluster-role gives the right to read them",
             why[0] ? ": " : "", why);
}

static bool has_devices(const struct job_spec *spec)
{
    bool any = false;
    for (uint32_t r = 0; r < spec->role_count; r++)
        any |= spec_role_has_devices(&spec->roles[r]);
    return any;
}

int lead_plan(struct lead *lead, struct job *job, struct drarun_error *err)
{
    cleanup_free struct plan_worker_input *workers = calloc(lead->spec->workers, sizeof *workers);
    CLEANUP(json_decrefp) json_t *claims = board_claims(lead->board, lead->render.attempt);
    if (!workers || !claims)
        return error_set(err, ENOMEM, "out of memory");
    int rc = lead_add_named_claims(lead, claims, err);
    if (rc < 0)
        return rc;
    collect(lead, claims, workers);
    struct job_plan_input input = {
        .spec = lead->spec,
        .workers = workers,
        .slices = lead->facts ? facts_slices(lead->facts) : NULL,
        .node_labels = lead->facts ? facts_node_labels(lead->facts) : NULL,
        .rank_order = lead->domain.rank_order,
        .warn = has_devices(lead->spec),
    };
    input.slices_unknown = lead->facts && !input.slices;
    if (input.slices_unknown)
        say_unknown(lead);
    return job_plan(job, &input, err);
}
