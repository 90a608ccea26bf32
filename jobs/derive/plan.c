/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/placement/cliques.h"
#include "jobs/derive/profile/profile_choice.h"
#include "jobs/derive/plan_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static void worker_done(struct plan_worker *worker)
{
    for (size_t g = 0; worker->rank_env && g < worker->gpu_count; g++)
        free(worker->rank_env[g].list);
    free(worker->rank_env);
    free(worker->env.list);
    free(worker->gpus);
    free(worker->model);
    free(worker->result);
    devices_done(&worker->devices);
    inventory_done(&worker->inventory);
}

void plan_done(struct plan *plan)
{
    for (size_t w = 0; w < plan->worker_count; w++)
        worker_done(&plan->workers[w]);
    free(plan->workers);
    free(plan->env.list);
    free(plan->prepend.list);
    warnings_done(&plan->warnings);
    free(plan->refusal.detail);
    strlist_done(&plan->pool);
    *plan = (struct plan){0};
}

DEFINE_CLEANUP(struct plan, plan_done)
DEFINE_CLEANUP(struct plan_notes, plan_notes_done)

/* ---- steps ---- */

static void show_inventory(struct plan_worker *worker)
{
    const struct inventory *inventory = &worker->inventory;
    worker->pod = inventory->pod;
    worker->node = inventory->node;
    worker->probe = inventory->probe;
    worker->unread_gpus = inventory->unread_gpus;
    worker->unread_nics = inventory->unread_nics;
    worker->plugin_gpus = inventory->plugin_gpus;
    worker->left = inventory->left;
    worker->left_count = inventory->left_count;
    worker->channel = inventory->channel;
    worker->mig = inventory->mig;
    worker->node_devices = inventory->node_devices;
    worker->node_device_count = inventory->node_device_count;
}

static int show_devices(struct plan_worker *worker, struct drarun_error *err)
{
    const struct devices *devices = &worker->devices;
    worker->gpus = calloc(devices->gpu_count + 1, sizeof *worker->gpus);
    if (!worker->gpus)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t g = 0; g < devices->gpu_count; g++)
        worker->gpus[g].device = devices->gpus[g];
    worker->gpu_count = devices->gpu_count;
    worker->nics = devices->nics;
    worker->nic_count = devices->nic_count;
    worker->tcp_interfaces = devices->tcp_interfaces;
    return 0;
}

static int read_worker(struct planning *p, uint32_t w, struct profile_choice *ret_choice,
                       struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    worker->score = -1;
    int rc = inventory_read(p->in, w, p->notes, &worker->inventory, err);
    if (rc < 0)
        return rc;
    show_inventory(worker);
    worker->clique = p->in->workers[w].clique;
    if (!worker->clique)
        worker->clique = plan_input_label(p->in, worker->node, CLIQUES_LABEL);
    if (rc == 0)
        rc = profile_choose(p->in, &worker->inventory, p->notes, ret_choice, err);
    if (rc != 0)
        return rc;
    worker->profile = ret_choice->profile;
    rc = devices_settle(p->in, w, &worker->inventory, worker->profile, p->notes, &worker->devices,
                        err);
    return rc == 0 ? show_devices(worker, err) : rc;
}

static int read_workers(struct planning *p, struct drarun_error *err)
{
    struct plan *plan = p->plan;
    for (uint32_t w = 0; w < plan->worker_count; w++) {
        struct profile_choice choice = {0};
        int rc = read_worker(p, w, &choice, err);
        if (rc != 0)
            return rc;
        if (w == 0) {
            plan->profile = choice.profile;
            plan->profile_fact = choice.fact;
        } else if (choice.profile != plan->profile) {
            return plan_notes_refuse(p->notes, WARN_MIXED_PROFILES, (int32_t)w,
                                     "worker 0 is of profile %s, worker %u of %s (%s)",
                                     plan->profile->name, w, choice.profile->name, choice.fact);
        }
    }
    return 0;
}

static void number_ranks(struct planning *p)
{
    struct plan *plan = p->plan;
    bool gpus = true;
    for (size_t w = 0; w < plan->worker_count; w++)
        gpus &= plan->workers[w].gpu_count + plan->workers[w].plugin_gpus > 0;
    plan->per_pod = p->in->ranks == PLAN_RANKS_POD || !gpus;
    for (size_t i = 0; i < plan->worker_count; i++) {
        struct plan_worker *worker = &plan->workers[p->in->rank_order ? p->in->rank_order[i] : i];
        worker->first_rank = plan->world_size;
        plan->world_size += plan->per_pod ? 1 : (uint32_t)worker->gpu_count + worker->plugin_gpus;
    }
}

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

static void warn_rails(struct planning *p)
{
    struct buf first = BUF_INIT;
    rails_text(&p->plan->workers[0], &first);
    for (size_t w = 1; w < p->plan->worker_count; w++) {
        struct buf other = BUF_INIT;
        rails_text(&p->plan->workers[w], &other);
        if (strcmp(first.data ? first.data : "", other.data ? other.data : "") != 0)
            warnings_add(&p->notes->warnings, WARN_RAIL_MISMATCH, (int32_t)w,
                         "rails per local rank %s differ from worker 0's %s",
                         other.data ? other.data : "", first.data ? first.data : "");
        p->notes->warnings.failed |= other.failed;
        buf_done(&other);
    }
    p->notes->warnings.failed |= first.failed;
    buf_done(&first);
}

static void warn_uneven(struct planning *p)
{
    const struct plan_worker *first = &p->plan->workers[0];
    for (size_t w = 1; w < p->plan->worker_count; w++) {
        const struct plan_worker *other = &p->plan->workers[w];
        if (other->gpu_count != first->gpu_count)
            warnings_add(&p->notes->warnings, WARN_UNEVEN_GPUS, (int32_t)w,
                         "%zu GPUs, worker 0 has %zu", other->gpu_count, first->gpu_count);
        if (other->nic_count != first->nic_count)
            warnings_add(&p->notes->warnings, WARN_UNEVEN_NICS, (int32_t)w,
                         "%zu NICs, worker 0 has %zu", other->nic_count, first->nic_count);
    }
}

/* Of a device plugin, or of claims whose devices no slice describes (inventory_visible.c). */
static void warn_unpaired(struct planning *p, const struct plan_worker *worker)
{
    bool claimed = worker->unread_gpus > 0;
    enum warning_code code = claimed ? WARN_GPUS_UNKNOWN : WARN_GPUS_BY_DEVICE_PLUGIN;
    if (warnings_have(&p->notes->warnings, code, WORKER_NONE))
        return;
    warnings_add(&p->notes->warnings, code, WORKER_NONE, "%s",
                 claimed ? "the pod shows more GPUs than its claims hold, and which are its own is "
                           "not known without ResourceSlices (drarun install --cluster-role): none "
                           "is paired with a NIC"
                         : "which GPUs the device plugin gives, and so which NIC each is paired "
                           "with, is known in the pod alone; drarun env tells there");
}

/* Only the pod shows which GPUs they are, and so with which NIC each is paired. */
static void warn_plugin(struct planning *p)
{
    for (size_t w = 0; w < p->plan->worker_count; w++) {
        const struct plan_worker *worker = &p->plan->workers[w];
        if (worker->plugin_gpus == 0)
            continue;
        warn_unpaired(p, worker);
        if (worker->nic_count < worker->plugin_gpus)
            warnings_add(&p->notes->warnings, WARN_FEWER_NICS_THAN_GPUS, (int32_t)w,
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

static void warn_same_node(struct planning *p)
{
    size_t count = 0, first = 0;
    cleanup_free struct placed *placed = calloc(p->plan->worker_count, sizeof *placed);
    if (!placed) {
        p->notes->warnings.failed = true;
        return;
    }
    for (uint32_t w = 0; w < p->plan->worker_count; w++)
        if (p->plan->workers[w].node)
            placed[count++] = (struct placed){p->plan->workers[w].node, w};
    qsort(placed, count, sizeof *placed, by_node);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(placed[i].node, placed[first].node) != 0)
            first = i;
        else
            warnings_add(&p->notes->warnings, WARN_SAME_NODE_PODS, (int32_t)placed[i].worker,
                         "shares its node with worker %u; NCCL takes the pods for different hosts "
                         "(no NVLink between them): one larger pod would be faster",
                         placed[first].worker);
    }
}

static int derive(struct planning *p, struct drarun_error *err)
{
    struct plan *plan = p->plan;
    plan->score = -1;
    ncclenv_common(p);
    ncclenv_gid_family(p);
    for (uint32_t w = 0; w < plan->worker_count; w++) {
        struct plan_worker *worker = &plan->workers[w];
        const char *arch = plan_input_label(p->in, worker->node, "kubernetes.io/arch");
        int rc = pairs_run(p, w, err);
        if (rc < 0)
            return rc;
        pairs_warn(p, w);
        plan_cut_cpus(p, w);
        ncclenv_worker(p, w);
        ncclenv_ranks(p, w);
        worker->score =
            score_worker(worker, arch ? strcmp(arch, "arm64") == 0 : worker->profile->c2c);
        if (worker->score >= 0 && (plan->score < 0 || worker->score < plan->score))
            plan->score = worker->score;
    }
    warn_rails(p);
    warn_plugin(p);
    warn_uneven(p);
    warn_same_node(p);
    return 0;
}

static bool out_of_memory(const struct plan *plan)
{
    bool failed = plan->env.failed || plan->prepend.failed;
    for (size_t w = 0; w < plan->worker_count; w++)
        failed |= plan->workers[w].env.failed;
    return failed;
}

static int read_version(const struct plan_input *in, struct plan *plan, struct drarun_error *err)
{
    plan->version = NCCL_VERSION_NEWEST;
    if (!in->nccl_version)
        return 0;
    plan->version = nccl_version_parse(in->nccl_version);
    if (plan->version == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "NCCL version: expected one like 2.28.9, got \"%.40s\"",
                          in->nccl_version);
    return 0;
}

int plan_build(const struct plan_input *in, struct plan *ret_plan, struct drarun_error *err)
{
    struct plan plan = {.score = -1};
    struct plan_notes notes = {0};
    CLEANUP(plan_notes_donep) struct plan_notes *undo_notes = &notes;
    CLEANUP(plan_donep) struct plan *undo = &plan;
    struct planning p = {.in = in, .plan = &plan, .notes = &notes};
    if (in->worker_count == 0 || in->worker_count > PLAN_WORKERS_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "a plan has 1 to %u workers, not %zu",
                          PLAN_WORKERS_MAX, in->worker_count);
    int rc = read_version(in, &plan, err);
    if (rc < 0)
        return rc;
    plan.workers = calloc(in->worker_count, sizeof *plan.workers);
    if (!plan.workers)
        return error_set(err, ENOMEM, "plan: out of memory");
    plan.worker_count = in->worker_count;
    rc = read_workers(&p, err);
    if (rc == 0) {
        number_ranks(&p);
        rc = derive(&p, err);
    }
    if (rc < 0)
        return rc;
    warnings_sort(&notes.warnings);
    if (plan_notes_failed(&notes) || out_of_memory(&plan))
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
