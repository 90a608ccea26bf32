/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as JSON, and as one line. */
#include <math.h>
#include <string.h>

#include "jobs/derive/pairing/pairing.h"
#include "jobs/derive/plan.h"
#include "lib/doc/value.h"

static json_t *score_json(double score)
{
    return score < 0 ? json_null() : json_real(round(score * 10000) / 10000);
}

static json_t *worker_json_index(int32_t worker)
{
    return worker == WORKER_NONE ? json_null() : json_integer(worker);
}

static json_t *vars_json(const struct plan_vars *vars)
{
    json_t *object = json_object();
    for (size_t i = 0; vars && i < vars->count; i++)
        json_object_set_new(object, vars->list[i].name, json_string(vars->list[i].value));
    return object;
}

static json_t *reasons_json(const struct plan_vars *vars)
{
    json_t *object = json_object();
    for (size_t i = 0; vars && i < vars->count; i++) {
        const struct plan_var *v = &vars->list[i];
        json_object_set_new(object, v->name,
                            json_pack("{s:s, s:s, s:s, s:s, s:s}", "value", v->value, "rule",
                                      v->rule, "fact", v->fact, "reason", v->reason, "source",
                                      v->source ? v->source : ""));
    }
    return object;
}

static json_t *warning_json(const struct warning *warning)
{
    json_t *object = json_object();
    json_object_set_new(object, "code", json_string(warning_name(warning->code)));
    json_object_set_new(object, "worker", worker_json_index(warning->worker));
    json_object_set_new(object, "detail", json_string(warning->detail));
    return object;
}

static json_t *warnings_json(const struct warnings *warnings)
{
    json_t *list = json_array();
    for (size_t i = 0; i < warnings->count; i++)
        json_array_append_new(list, warning_json(&warnings->list[i]));
    return list;
}

static void add_uses(json_t *rank, const struct plan_worker *worker, size_t g)
{
    json_t *nics = json_array(), *path = json_array(), *gdr = json_array(), *rails = json_array();
    for (size_t i = 0; worker->result && i < worker->result->count[g]; i++) {
        const struct nccl_use *use = &worker->result->use[g][i];
        json_array_append_new(nics, json_string(worker->nics[use->nic].found.label));
        json_array_append_new(path, json_string(nccl_path_name(use->path)));
        json_array_append_new(gdr, json_boolean(use->gdr));
        json_array_append_new(rails, json_integer(worker->nics[use->nic].rail));
    }
    json_object_set_new(rank, "nics", nics);
    json_object_set_new(rank, "path", path);
    json_object_set_new(rank, "gdr", gdr);
    json_object_set_new(rank, "rails", rails);
}

static json_t *rank_json(const struct plan *plan, const struct plan_worker *worker, size_t g,
                         bool explain)
{
    const struct device *gpu = &worker->gpus[g].device;
    json_t *rank = json_object();
    char pci[32];
    json_object_set_new(rank, "rank",
                        json_integer((json_int_t)worker->first_rank +
                                     (plan->per_pod || plan->shared ? 0 : (json_int_t)g)));
    json_object_set_new(rank, "localRank", json_integer((json_int_t)g));
    json_object_set_new(rank, "gpu", json_string(gpu->name));
    json_object_set_new(rank, "uuid", value_of_text(gpu->uuid));
    if (gpu->pci != PCI_NONE)
        pci_format(gpu->pci, pci, sizeof pci);
    json_object_set_new(rank, "pci", value_of_text(gpu->pci != PCI_NONE ? pci : NULL));
    json_object_set_new(rank, "numa", gpu->numa < 0 ? json_null() : json_integer(gpu->numa));
    add_uses(rank, worker, g);
    json_object_set_new(rank, "cpus", value_of_text(worker->gpus[g].cpus));
    if (worker->rank_env)
        json_object_set_new(rank, "env", vars_json(&worker->rank_env[g]));
    if (worker->rank_env && explain)
        json_object_set_new(rank, "explain", reasons_json(&worker->rank_env[g]));
    return rank;
}

static bool is_used(const struct plan_worker *worker, size_t nic)
{
    for (size_t g = 0; worker->result && g < worker->gpu_count; g++)
        for (size_t i = 0; i < worker->result->count[g]; i++)
            if (worker->result->use[g][i].nic == nic)
                return true;
    return false;
}

/* Whether its ranks name every one. */
static bool all_used(const struct plan_worker *worker)
{
    for (size_t n = 0; n < worker->nic_count; n++)
        if (!is_used(worker, n))
            return false;
    return true;
}

static json_t *nics_json(const struct plan_worker *worker)
{
    json_t *list = json_array();
    for (size_t n = 0; n < worker->nic_count; n++)
        json_array_append_new(list, json_string(worker->nics[n].found.label));
    return list;
}

static json_t *worker_json(const struct plan *plan, size_t w, bool explain)
{
    const struct plan_worker *worker = &plan->workers[w];
    json_t *object = json_object(), *ranks = json_array();
    json_object_set_new(object, "worker", json_integer((json_int_t)w));
    json_object_set_new(object, "pod", value_of_text(worker->pod));
    json_object_set_new(object, "env", vars_json(&worker->env));
    if (explain)
        json_object_set_new(object, "explain", reasons_json(&worker->env));
    for (size_t g = 0; g < worker->gpu_count; g++)
        json_array_append_new(ranks, rank_json(plan, worker, g, explain));
    json_object_set_new(object, "ranks", ranks);
    if (worker->plugin_gpus > 0) { /* ranks has none of theirs */
        json_object_set_new(object, "pluginGpus", json_integer(worker->plugin_gpus));
        json_object_set_new(object, "firstRank", json_integer(worker->first_rank));
    }
    if (worker->plugin_gpus > 0 || !all_used(worker))
        json_object_set_new(object, "nics", nics_json(worker));
    json_object_set_new(object, "score", score_json(worker->score));
    return object;
}

json_t *plan_to_json(const struct plan *plan, bool explain)
{
    json_t *object = json_object(), *workers = json_array();
    json_object_set_new(object, "refuse",
                        plan->refusal.code ? warning_json(&plan->refusal) : json_null());
    json_object_set_new(object, "warnings", warnings_json(&plan->warnings));
    if (plan->refusal.code) {
        json_decref(workers);
        return object;
    }
    json_object_set_new(object, "profile", json_string(plan->profile->name));
    json_object_set_new(object, "env", vars_json(&plan->env));
    json_object_set_new(object, "prepend", vars_json(&plan->prepend));
    if (explain)
        json_object_set_new(object, "explain", reasons_json(&plan->env));
    for (size_t w = 0; w < plan->worker_count; w++)
        json_array_append_new(workers, worker_json(plan, w, explain));
    json_object_set_new(object, "workers", workers);
    json_object_set_new(object, "jobScore", score_json(plan->score));
    return object;
}

/* ---- one line ---- */

/* The best that one NIC for each GPU could be, whatever NCCL makes of it. */
static void count_pairs(const struct plan_worker *worker, uint32_t counts[NCCL_PATH_COUNT],
                        uint32_t *ret_nodes)
{
    uint8_t classes[PAIRING_MAX][PAIRING_MAX];
    uint32_t columns[PAIRING_MAX];
    const struct nccl_model *m = worker->model;
    for (uint32_t g = 0; g < m->gpus; g++)
        for (uint32_t n = 0; n < m->nics; n++) {
            uint8_t path = m->classes[g][n];
            classes[g][n] = path == NCCL_PATH_PIX   ? 0
                            : path == NCCL_PATH_PXB ? 1
                            : path == NCCL_PATH_PHB ? 2
                                                    : 3;
        }
    pairing_assign(m->gpus, m->nics, classes, columns);
    for (uint32_t g = 0; g < m->gpus; g++) {
        if (columns[g] == PAIRING_NONE)
            continue;
        uint8_t path = m->classes[g][columns[g]];
        *ret_nodes += path == NCCL_PATH_PHB && !m->c2c && m->nodes[g][columns[g]];
        /* over the chip-to-chip link and the CPU's root, as NCCL names it */
        counts[m->c2c && path == NCCL_PATH_PHB ? NCCL_PATH_P2C : path]++;
    }
}

void plan_worker_summary(const struct plan_worker *worker, struct buf *out)
{
    uint32_t counts[NCCL_PATH_COUNT] = {0}, nodes = 0;
    double limit = 0;
    const char *separator = ":";
    if (worker->plugin_gpus > 0) {
        buf_printf(out, "%u GPUs by the device plugin, %zu NICs: paired in the pod",
                   worker->plugin_gpus, worker->nic_count);
        return;
    }
    buf_printf(out, "%zu GPUs, %zu NICs", worker->gpu_count, worker->nic_count);
    if (!worker->model)
        return;
    count_pairs(worker, counts, &nodes);
    counts[NCCL_PATH_PHB] -= nodes;
    for (int path = 0; path < NCCL_PATH_COUNT; path++) {
        if (counts[path] > 0) {
            buf_printf(out, "%s %u %s", separator, counts[path], nccl_path_name(path));
            separator = ",";
        }
        if (path == NCCL_PATH_PHB && nodes > 0) {
            buf_printf(out, "%s %u NODE", separator, nodes);
            separator = ",";
        }
    }
    for (size_t n = 0; n < worker->nic_count; n++)
        limit = worker->nics[n].gbs > limit ? worker->nics[n].gbs : limit;
    limit *= (double)worker->gpu_count;
    buf_printf(out, "; %.0f GB/s of %.0f", worker->score * limit, limit);
}
