/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/pairing/pairs.h"
#include "jobs/derive/placement/placement.h"
#include "jobs/derive/profile/profile_choice.h"
#include "jobs/derive/variables/variables.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* What each step returned; of a refused plan, the steps before the refusal. */
struct plan_steps {
    size_t worker_count;
    struct inventory *inventories;   /* by worker, as devices, gpus and pairs */
    const struct profile **profiles; /* by worker */
    struct profile_choice choice;    /* of all workers */
    struct devices *devices;
    struct placement placement;
    struct variables variables;
    struct pairs *pairs;
    struct plan_gpu **gpus; /* the devices' GPUs with their CPUs, for the plan */
};

static void steps_free(struct plan_steps *steps)
{
    if (!steps)
        return;
    for (size_t w = 0; w < steps->worker_count; w++) {
        if (steps->inventories)
            inventory_done(&steps->inventories[w]);
        if (steps->devices)
            devices_done(&steps->devices[w]);
        if (steps->pairs)
            pairs_done(&steps->pairs[w]);
        if (steps->gpus)
            free(steps->gpus[w]);
    }
    placement_done(&steps->placement);
    variables_done(&steps->variables);
    free(steps->inventories);
    free(steps->profiles);
    free(steps->devices);
    free(steps->pairs);
    free(steps->gpus);
    free(steps);
}

/* NULL: out of memory. */
static struct plan_steps *steps_new(size_t workers)
{
    struct plan_steps *steps = calloc(1, sizeof *steps);
    if (!steps)
        return NULL;
    steps->worker_count = workers;
    steps->inventories = calloc(workers, sizeof *steps->inventories);
    steps->profiles = calloc(workers, sizeof *steps->profiles);
    steps->devices = calloc(workers, sizeof *steps->devices);
    steps->pairs = calloc(workers, sizeof *steps->pairs);
    steps->gpus = calloc(workers, sizeof *steps->gpus);
    if (steps->inventories && steps->profiles && steps->devices && steps->pairs && steps->gpus)
        return steps;
    steps_free(steps);
    return NULL;
}

void plan_done(struct plan *plan)
{
    steps_free(plan->steps);
    free(plan->workers);
    warnings_done(&plan->warnings);
    free(plan->refusal.detail);
    strlist_done(&plan->pool);
    *plan = (struct plan){0};
}

DEFINE_CLEANUP(struct plan, plan_done)
DEFINE_CLEANUP(struct plan_notes, plan_notes_done)

/* ---- the steps ---- */

/* One worker after another, so that the first that cannot run is named. 1: refused. */
static int read_workers(const struct plan_input *in, struct plan_notes *notes,
                        struct plan_steps *steps, struct drarun_error *err)
{
    for (uint32_t w = 0; w < steps->worker_count; w++) {
        const struct inventory *inventory = &steps->inventories[w];
        struct profile_choice choice = {0};
        int rc = inventory_read(in, w, notes, &steps->inventories[w], err);
        if (rc == 0)
            rc = profile_choose(in, inventory, notes, &choice, err);
        steps->profiles[w] = choice.profile;
        if (rc == 0)
            rc = devices_settle(in, w, inventory, choice.profile, notes, &steps->devices[w], err);
        if (rc != 0)
            return rc;
        if (w == 0)
            steps->choice = choice;
        else if (choice.profile != steps->choice.profile)
            return plan_notes_refuse(notes, WARN_MIXED_PROFILES, (int32_t)w,
                                     "worker 0 is of profile %s, worker %u of %s (%s)",
                                     steps->choice.profile->name, w, choice.profile->name,
                                     choice.fact);
    }
    return 0;
}

static int pair_workers(const struct plan_input *in, uint32_t version, struct plan_notes *notes,
                        struct plan_steps *steps, struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t w = 0; rc == 0 && w < steps->worker_count; w++) {
        const struct pairs_input input = {
            .plan = in,
            .worker = w,
            .inventory = &steps->inventories[w],
            .devices = &steps->devices[w],
            .profile = steps->choice.profile,
            .variables = &steps->variables,
            .version = version,
        };
        rc = pairs_make(&input, notes, &steps->pairs[w], err);
    }
    return rc;
}

/* NCCL reads variables when it pairs, so these come first. 1: refused. */
static int run_steps(const struct plan_input *in, uint32_t version, struct plan_notes *notes,
                     struct plan_steps *steps, struct drarun_error *err)
{
    const struct variables_input variables = {
        .plan = in,
        .inventories = steps->inventories,
        .devices = steps->devices,
        .choice = &steps->choice,
        .placement = &steps->placement,
        .version = version,
    };
    int rc = read_workers(in, notes, steps, err);
    if (rc == 0)
        rc = placement_make(in, steps->inventories, steps->devices, notes, &steps->placement, err);
    if (rc == 0)
        rc = variables_make(&variables, notes, &steps->variables, err);
    return rc == 0 ? pair_workers(in, version, notes, steps, err) : rc;
}

/* ---- what they returned, as a plan ---- */

static int show_gpus(const struct plan_steps *steps, size_t w, struct plan_worker *worker,
                     struct drarun_error *err)
{
    const struct devices *devices = &steps->devices[w];
    struct plan_gpu *gpus = calloc(devices->gpu_count + 1, sizeof *gpus);
    if (!gpus)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t g = 0; g < devices->gpu_count; g++)
        gpus[g].device = devices->gpus[g];
    steps->gpus[w] = gpus;
    worker->gpus = gpus;
    worker->gpu_count = devices->gpu_count;
    return 0;
}

/* What the first three steps returned, of a refused plan too: nothing of a worker that was not
 * read. */
static int show_read(const struct plan_steps *steps, size_t w, struct plan_worker *worker,
                     struct drarun_error *err)
{
    const struct inventory *inventory = &steps->inventories[w];
    worker->pod = inventory->pod;
    worker->node = inventory->node;
    worker->clique = inventory->clique;
    worker->profile = steps->profiles[w];
    worker->unread_gpus = inventory->unread_gpus;
    worker->unread_nics = inventory->unread_nics;
    worker->plugin_gpus = inventory->plugin_gpus;
    worker->nics = steps->devices[w].nics;
    worker->nic_count = steps->devices[w].nic_count;
    worker->left = inventory->left;
    worker->left_count = inventory->left_count;
    worker->channel = inventory->channel;
    worker->score = -1;
    return show_gpus(steps, w, worker, err);
}

static void show_derived(const struct plan_steps *steps, size_t w, struct plan_worker *worker)
{
    const struct placement_worker *place = &steps->placement.workers[w];
    const struct variables_worker *variables = &steps->variables.workers[w];
    const struct pairs *pairs = &steps->pairs[w];
    for (size_t g = 0; g < worker->gpu_count; g++)
        steps->gpus[w][g].cpus = place->cpus[g];
    worker->first_rank = place->first_rank;
    worker->env = variables->env;
    worker->rank_env = variables->ranks;
    worker->model = pairs->model;
    worker->result = pairs->result;
    worker->score = pairs->score;
}

static int show(const struct plan_steps *steps, bool refused, struct plan *plan,
                struct drarun_error *err)
{
    plan->profile = steps->choice.profile;
    plan->profile_fact = steps->choice.fact;
    plan->env = steps->variables.env;
    plan->prepend = steps->variables.prepend;
    plan->world_size = steps->placement.world_size;
    plan->per_pod = steps->placement.per_pod;
    plan->shared = steps->placement.shared;
    plan->roce_ipv6 = steps->variables.roce_ipv6;
    for (size_t w = 0; w < plan->worker_count; w++) {
        struct plan_worker *worker = &plan->workers[w];
        int rc = show_read(steps, w, worker, err);
        if (rc < 0)
            return rc;
        if (!refused)
            show_derived(steps, w, worker);
        if (worker->score >= 0 && (plan->score < 0 || worker->score < plan->score))
            plan->score = worker->score;
    }
    return 0;
}

/* ---- what is worth saying of the whole ---- */

/* The rails of each GPU as one text: equal texts, equal rails. */
static void rails_text(const struct plan_worker *worker, struct buf *out)
{
    for (size_t g = 0; worker->result && g < worker->gpu_count; g++) {
        buf_add_str(out, "[");
        for (size_t i = 0; i < worker->result->count[g]; i++)
            buf_printf(out, "%s%d", i ? "," : "", worker->nics[worker->result->use[g][i].nic].rail);
        buf_add_str(out, "]");
    }
}

static void warn_rails(const struct plan *plan, struct plan_notes *notes)
{
    struct buf first = BUF_INIT;
    rails_text(&plan->workers[0], &first);
    for (size_t w = 1; w < plan->worker_count; w++) {
        struct buf other = BUF_INIT;
        rails_text(&plan->workers[w], &other);
        if (strcmp(first.data ? first.data : "", other.data ? other.data : "") != 0)
            warnings_add(&notes->warnings, WARN_RAIL_MISMATCH, (int32_t)w,
                         "rails per local rank %s differ from worker 0's %s",
                         other.data ? other.data : "", first.data ? first.data : "");
        notes->warnings.failed |= other.failed;
        buf_done(&other);
    }
    notes->warnings.failed |= first.failed;
    buf_done(&first);
}

static void warn_uneven(const struct plan *plan, struct plan_notes *notes)
{
    const struct plan_worker *first = &plan->workers[0];
    for (size_t w = 1; w < plan->worker_count; w++) {
        const struct plan_worker *other = &plan->workers[w];
        if (other->gpu_count != first->gpu_count)
            warnings_add(&notes->warnings, WARN_UNEVEN_GPUS, (int32_t)w,
                         "%zu GPUs, worker 0 has %zu", other->gpu_count, first->gpu_count);
        if (other->nic_count != first->nic_count)
            warnings_add(&notes->warnings, WARN_UNEVEN_NICS, (int32_t)w,
                         "%zu NICs, worker 0 has %zu", other->nic_count, first->nic_count);
    }
}

/* Of a device plugin, or of claims whose devices no slice describes (inventory_visible.c). */
static void warn_unpaired(const struct plan_worker *worker, struct plan_notes *notes)
{
    bool claimed = worker->unread_gpus > 0;
    enum warning_code code = claimed ? WARN_GPUS_UNKNOWN : WARN_GPUS_BY_DEVICE_PLUGIN;
    if (warnings_have(&notes->warnings, code, WORKER_NONE))
        return;
    warnings_add(&notes->warnings, code, WORKER_NONE, "%s",
                 claimed ? "the pod shows more GPUs than its claims hold, and which are its own is "
                           "not known without ResourceSlices (drarun install --cluster-role): none "
                           "is paired with a NIC"
                         : "which GPUs the device plugin gives, and so which NIC each is paired "
                           "with, is known in the pod alone; drarun env tells there");
}

/* Only the pod shows which GPUs they are, and so with which NIC each is paired. */
static void warn_plugin(const struct plan *plan, struct plan_notes *notes)
{
    for (size_t w = 0; w < plan->worker_count; w++) {
        const struct plan_worker *worker = &plan->workers[w];
        if (worker->plugin_gpus == 0)
            continue;
        warn_unpaired(worker, notes);
        if (worker->nic_count < worker->plugin_gpus)
            warnings_add(&notes->warnings, WARN_FEWER_NICS_THAN_GPUS, (int32_t)w,
                         "%zu NICs for %u GPUs", worker->nic_count, worker->plugin_gpus);
    }
}

struct placed {
    const char *node;
    uint32_t worker;
};

static int by_node(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    return order != 0 ? order : (x->worker > y->worker) - (x->worker < y->worker);
}

static void warn_same_node(const struct plan *plan, struct plan_notes *notes)
{
    size_t count = 0, first = 0;
    cleanup_free struct placed *placed = calloc(plan->worker_count, sizeof *placed);
    if (!placed) {
        notes->warnings.failed = true;
        return;
    }
    for (uint32_t w = 0; w < plan->worker_count; w++)
        if (plan->workers[w].node)
            placed[count++] = (struct placed){plan->workers[w].node, w};
    qsort(placed, count, sizeof *placed, by_node);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(placed[i].node, placed[first].node) != 0)
            first = i;
        else
            warnings_add(&notes->warnings, WARN_SAME_NODE_PODS, (int32_t)placed[i].worker,
                         "shares its node with worker %u; NCCL takes the pods for different hosts "
                         "(no NVLink between them): one larger pod would be faster",
                         placed[first].worker);
    }
}

static void warn_of_all(const struct plan *plan, struct plan_notes *notes)
{
    warn_rails(plan, notes);
    warn_plugin(plan, notes);
    warn_uneven(plan, notes);
    warn_same_node(plan, notes);
}

/* ---- the whole ---- */

static int parse_version(const char *text, enum drarun_errkind kind, uint32_t *ret_version,
                         struct drarun_error *err)
{
    uint32_t version = text ? nccl_version_parse(text) : NCCL_VERSION_NEWEST;
    if (version == 0)
        return error_kind(err, kind, EINVAL,
                          "NCCL version: expected one like 2.28.9, got \"%.40s\"", text);
    *ret_version = version;
    return 0;
}

int plan_check_version(const char *option, struct drarun_error *err)
{
    uint32_t version = 0;
    return parse_version(option, DRARUN_ERR_USAGE, &version, err);
}

int plan_build(const struct plan_input *in, struct plan *ret_plan, struct drarun_error *err)
{
    struct plan plan = {.score = -1, .worker_count = in->worker_count};
    struct plan_notes notes = {0};
    CLEANUP(plan_notes_donep) struct plan_notes *undo_notes = &notes;
    CLEANUP(plan_donep) struct plan *undo = &plan;
    if (in->worker_count == 0 || in->worker_count > PLAN_WORKERS_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "a plan has 1 to %u workers, not %zu",
                          PLAN_WORKERS_MAX, in->worker_count);
    int rc = parse_version(in->nccl_version, DRARUN_ERR_SPEC, &plan.version, err);
    if (rc < 0)
        return rc;
    plan.workers = calloc(in->worker_count, sizeof *plan.workers);
    plan.steps = steps_new(in->worker_count);
    if (!plan.workers || !plan.steps)
        return error_set(err, ENOMEM, "plan: out of memory");
    rc = run_steps(in, plan.version, &notes, plan.steps, err);
    if (rc < 0)
        return rc;
    bool refused = rc != 0;
    rc = show(plan.steps, refused, &plan, err);
    if (rc < 0)
        return rc;
    if (!refused)
        warn_of_all(&plan, &notes);
    warnings_sort(&notes.warnings);
    if (plan_notes_failed(&notes))
        return error_set(err, ENOMEM, "plan: out of memory");
    plan.warnings = notes.warnings;
    plan.refusal = notes.refusal;
    plan.pool = notes.pool;
    undo = NULL;
    undo_notes = NULL;
    *ret_plan = plan;
    return 0;
}

/* ---- of all roles ---- */

int plan_join(const struct plan *plans, size_t count, struct plan *ret_joined,
              struct drarun_error *err)
{
    size_t workers = 0, warnings = 0;
    for (size_t i = 0; i < count; i++) {
        workers += plans[i].worker_count;
        warnings += plans[i].warnings.count;
    }
    struct plan joined = plans[0];
    joined.workers = calloc(workers + 1, sizeof *joined.workers);
    joined.warnings = (struct warnings){.list = calloc(warnings + 1, sizeof(struct warning))};
    joined.worker_count = 0;
    joined.world_size = 0;
    if (!joined.workers || !joined.warnings.list) {
        plan_join_done(&joined);
        return error_set(err, ENOMEM, "plan: out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const struct plan *plan = &plans[i];
        for (size_t k = 0; k < plan->warnings.count; k++) {
            struct warning *warning = &joined.warnings.list[joined.warnings.count++];
            *warning = plan->warnings.list[k];
            if (warning->worker != WORKER_NONE)
                warning->worker += (int32_t)joined.worker_count;
        }
        for (size_t w = 0; w < plan->worker_count; w++) {
            struct plan_worker *worker = &joined.workers[joined.worker_count++];
            *worker = plan->workers[w];
            worker->first_rank += joined.world_size;
        }
        joined.world_size += plan->world_size;
    }
    *ret_joined = joined;
    return 0;
}

void plan_join_done(struct plan *joined)
{
    free(joined->workers);
    free(joined->warnings.list);
    *joined = (struct plan){0};
}
