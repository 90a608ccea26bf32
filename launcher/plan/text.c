/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/plan/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/extended_claim.h"
#include "jobs/manifests/claims.h"
#include "jobs/derive/placement/cliques.h"
#include "jobs/spec/node_spread.h"
#include "jobs/manifests/tolerations.h"
#include "lib/base/cleanup.h"

/* ---- columns ---- */

#define COLUMNS 10

/* Cells are gathered and padded to the widest of their column. */
struct table {
    struct strlist cells;
    size_t columns;
};

static void table_write(const struct table *table, const char *indent, struct buf *out)
{
    size_t width[COLUMNS] = {0};
    out->failed |= table->cells.failed;
    for (size_t i = 0; i < table->cells.count; i++) {
        size_t length = strlen(table->cells.items[i]), column = i % table->columns;
        width[column] = length > width[column] ? length : width[column];
    }
    for (size_t i = 0; i < table->cells.count; i++) {
        bool last = i % table->columns == table->columns - 1;
        if (i % table->columns == 0)
            buf_add_str(out, indent);
        if (last)
            buf_printf(out, "%s\n", table->cells.items[i]);
        else
            buf_printf(out, "%-*s  ", (int)width[i % table->columns], table->cells.items[i]);
    }
}

/* ---- what is claimed ---- */

static void source_words(const struct preview_input *in, const char *resource, struct buf *out)
{
    const struct extended_cluster cluster = {in->nodes, in->classes, in->minor};
    enum extended_source source;
    const char *class;
    int rc = extended_claim_source(&cluster, resource, &source, &class, NULL);
    if (rc == 0 && source == EXTENDED_SOURCE_CLASS)
        buf_printf(out, " (%s, served by DeviceClass %s)", resource, class);
    else
        buf_printf(out, " from a device plugin (%s)", resource);
}

static void device_words(const struct preview_input *in, const struct spec_devices *d,
                         const char *what, struct buf *out)
{
    if (!d->all && d->count == 0)
        return;
    if (out->len > 0)
        buf_add_str(out, " and ");
    if (d->all)
        buf_printf(out, "all %ss", what);
    else
        buf_printf(out, "%u %s%s", d->count, what, d->count == 1 ? "" : "s");
    if (d->resource)
        source_words(in, d->resource, out);
    else if (d->class)
        buf_printf(out, " of class %s", d->class);
}

/* The rung that the claim is on, and those above it, which too few nodes meet. */
static void rung_words(const struct preview_input *in, const struct preview *p, struct buf *out)
{
    enum claims_rung rung = claims_rung(in->role, p->step);
    if (rung == CLAIMS_RUNG_NONE)
        buf_add_str(out, "GPUs and NICs without a constraint");
    else
        buf_printf(out, "each GPU with %s, by a constraint of the claim", claims_rung_words(rung));
    for (unsigned step = 0; step < p->step; step++)
        buf_printf(out, "%s%s",
                   step > 0               ? " or "
                   : p->placed_first == 0 ? ": no node can meet "
                                          : ": too few nodes meet ",
                   claims_rung_name(claims_rung(in->role, step)));
    if (p->step > 0)
        buf_add_str(out, " (align: preferred)");
    else if (rung == CLAIMS_RUNG_NUMA)
        buf_printf(out, ": %s has no common root", in->role->machine.profile);
}

static void alignment_words(const struct preview_input *in, const struct preview *p,
                            struct buf *out)
{
    switch (claims_alignment(in->role)) {
    case CLAIMS_ALIGNED_BY_CLAIM:
        rung_words(in, p, out);
        break;
    case CLAIMS_ALIGNED_IN_POD:
        buf_add_str(out, "GPU and NIC are paired in the pod: no constraint can express it here");
        break;
    default:
        return;
    }
    buf_add_str(out, "\n");
}

static void spread(const struct job_spec *spec, const struct spec_role *role, struct buf *out)
{
    int spread = node_spread_of(spec, role, false, NULL);
    if (spread == NODE_SPREAD_BY_SPEC)
        buf_printf(out, "one worker per node (" NODE_SPREAD_KEY "%s)\n",
                   spec->spread ? "" : " by default");
    else if (spread == NODE_SPREAD_BY_TEMPLATE)
        buf_add_str(out, "one worker per node (the template's podAntiAffinity)\n");
}

static void tolerations(const struct job_spec *spec, const struct spec_role *role, struct buf *out)
{
    struct toleration list[TOLERATIONS_MAX];
    size_t count = tolerations_of(spec, role, list);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%s%s", i == 0 ? "pods tolerate the taint " : ", and ", list[i].key);
        if (list[i].value)
            buf_printf(out, "=%s", list[i].value);
        buf_printf(out, " (%s)", list[i].nodes);
    }
    if (count > 0)
        buf_add_str(out, "\n");
}

static void head(const struct preview_input *in, const struct preview *p, struct buf *out)
{
    const struct job_spec *spec = in->spec;
    const struct spec_role *role = in->role;
    struct buf devices = BUF_INIT;
    device_words(in, &role->gpus, "GPU", &devices);
    device_words(in, &role->nics, "NIC", &devices);
    if (role->cpus.class)
        buf_printf(&devices, "%s%u CPUs of class %s", devices.len ? " and " : "", role->cpu_count,
                   role->cpus.class);
    if (spec_has_roles(spec))
        buf_printf(out, "role %s", role->name);
    else
        buf_printf(out, "job %s", spec->name);
    buf_printf(out, ": %u worker%s", role->workers, role->workers == 1 ? "" : "s");
    buf_printf(out, devices.len > 0 ? ", each with %s\n" : "%s\n",
               devices.len > 0 ? devices.data : ", which claim no devices");
    out->failed |= devices.failed;
    buf_done(&devices);
    alignment_words(in, p, out);
    spread(spec, role, out);
    if (spec->compute_domain)
        buf_add_str(out, "one NVLink domain for all workers (ComputeDomain), a channel each\n");
    tolerations(spec, role, out);
}

/* Where no table of them follows. What a node's GPUs or mpirun decide is not known here. */
static void ranks_words(const struct preview_input *in, struct buf *out)
{
    const struct spec_role *role = in->role;
    if (in->spec->launch == SPEC_LAUNCH_MPIRUN || (role->gpus.all && role->ranks_per_worker == 0))
        return;
    uint32_t each = spec_role_ranks(role, false, NULL, role->gpus.count);
    if (each == 1)
        buf_printf(out, "one rank on each worker\n");
    else
        buf_printf(out, "%u ranks on each worker, %" PRIu64 " in all\n", each,
                   (uint64_t)each * role->workers);
}

/* ---- the prediction ---- */

static void needs(const struct prediction *prediction, unsigned minor, struct buf *out)
{
    unsigned followed = predict_minor_followed(minor);
    if (prediction->need_count == 0)
        return;
    buf_add_str(out, "\nRequests over the slices");
    if (followed != PREDICT_MINOR_NEWEST)
        buf_printf(out, ", as Kubernetes 1.%u allocates", followed);
    buf_add_str(out, ":\n");
    for (size_t i = 0; i < prediction->need_count; i++) {
        const struct predict_need *need = &prediction->needs[i];
        buf_printf(out, "  %s: %zu of %zu devices admitted\n", need->requests, need->admitted,
                   need->devices);
        for (size_t t = 0; t < need->term_count; t++)
            if (need->terms[t].ruled_out > 0)
                buf_printf(out, "    %zu ruled out by %s: %s\n", need->terms[t].ruled_out,
                           need->terms[t].where, need->terms[t].text);
        if (need->tainted > 0)
            buf_printf(out,
                       "    %zu ruled out by taints that the request does not tolerate, as %s\n",
                       need->tainted, need->taint);
    }
}

static void placed(const struct preview *p, struct buf *out)
{
    struct table table = {.columns = 3};
    buf_printf(out, "\n%s, predicted (first fit; the scheduler may choose other nodes):\n",
               p->claim ? "Allocation" : "Nodes");
    for (uint32_t i = 0; i < p->prediction.placed; i++) {
        const struct predict_worker *worker = &p->prediction.workers[i];
        struct buf names = BUF_INIT;
        for (size_t r = 0; r < json_array_size(worker->results); r++) {
            const json_t *result = json_array_get(worker->results, r);
            buf_printf(&names, "%s%s", r ? " " : "",
                       json_string_value(json_object_get(result, "device")));
        }
        strlist_addf(&table.cells, "worker %u", i);
        strlist_add(&table.cells, worker->node);
        strlist_add(&table.cells, names.data ? names.data : "");
        table.cells.failed |= names.failed;
        buf_done(&names);
    }
    table_write(&table, "  ", out);
    strlist_done(&table.cells);
}

/* ---- the plan ---- */

/* Those of a GPU: one, or all of its worker's. */
static void add_numbers(const struct plan *plan, size_t w, size_t gpu, struct strlist *cells)
{
    uint32_t first = plan->workers[w].first_rank;
    if (plan->shared)
        strlist_addf(cells, "%u-%u", first,
                     first + plan->world_size / (uint32_t)plan->worker_count - 1);
    else
        strlist_addf(cells, "%u", first + (plan->per_pod ? 0 : (uint32_t)gpu));
}

static void add_rank(struct table *table, const struct plan *plan, size_t w, size_t gpu)
{
    const struct plan_worker *worker = &plan->workers[w];
    const struct plan_gpu *g = &worker->gpus[gpu];
    struct buf nics = BUF_INIT, paths = BUF_INIT;
    bool gdr = worker->result && worker->result->count[gpu] > 0;
    for (size_t i = 0; worker->result && i < worker->result->count[gpu]; i++) {
        const struct nccl_use *use = &worker->result->use[gpu][i];
        buf_printf(&nics, "%s%s", i ? "," : "", worker->nics[use->nic].found.label);
        buf_printf(&paths, "%s%s", i ? "," : "",
                   nccl_model_path_name(worker->model, gpu, use->nic, (enum nccl_path)use->path));
        gdr = gdr && use->gdr;
    }
    char pci[24] = "-";
    if (g->device.pci != PCI_NONE)
        pci_format(g->device.pci, pci, sizeof pci);
    add_numbers(plan, w, gpu, &table->cells);
    strlist_addf(&table->cells, "%zu", w);
    strlist_add(&table->cells, g->device.name);
    strlist_add(&table->cells, pci);
    if (g->device.numa >= 0)
        strlist_addf(&table->cells, "%d", g->device.numa);
    else
        strlist_add(&table->cells, "-");
    strlist_add(&table->cells, nics.len ? nics.data : "-");
    strlist_add(&table->cells, paths.len ? paths.data : "-");
    strlist_add(&table->cells, !nics.len ? "-" : gdr ? "yes" : "no");
    strlist_add(&table->cells, g->cpus ? g->cpus : "-");
    table->cells.failed |= nics.failed || paths.failed;
    buf_done(&nics);
    buf_done(&paths);
}

/* In a compute domain: who has NVLink to whom. A new reference; NULL: nobody. */
static json_t *cliques_of(const struct preview *p, bool *ret_failed)
{
    const struct plan *plan = &p->plan;
    uint32_t count = (uint32_t)plan->worker_count;
    assert(count > 0);
    cleanup_free const char **cliques = calloc(count + 1u, sizeof *cliques);
    *ret_failed = !cliques;
    for (uint32_t w = 0; cliques && w < count; w++)
        cliques[w] = plan->workers[w].channel ? plan->workers[w].clique : NULL;
    CLEANUP(json_decrefp)
    json_t *list =
        cliques ? cliques_json(cliques, p->rank_order, count, plan->world_size / count) : NULL;
    *ret_failed |= !list;
    return json_array_size(list) > 0 ? TAKE_PTR(list) : NULL;
}

static void add_cliques(const struct preview *p, struct buf *out)
{
    bool failed = false;
    CLEANUP(json_decrefp) json_t *list = cliques_of(p, &failed);
    out->failed |= failed;
    if (!list)
        return;
    cliques_line(list, out);
    buf_add_str(out, "\n");
}

/* drarun topo of the same slices says ROOT, where NCCL's terms have nothing for it. */
static const char *const fact_words[] = {
    [PAIR_BY_FILE] = "by the topology file",
    [PAIR_BY_SYSFS] = "by the pods' sysfs",
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one text
    [PAIR_BY_ROOT] = "by the PCIe root that GPU and NIC share; slices do not describe the switches "
                     "below it: it may be PIX, PXB or PHB (ROOT in drarun topo)",
    [PAIR_BY_NAMES] = "by GKE's names of NICs",
    [PAIR_BY_NUMA] = "by NUMA nodes",
};

/* How the paths above are known: a line for each fact that one of them has. */
static void path_facts(const struct plan *plan, struct buf *out)
{
    bool has[ARRAY_LEN(fact_words)] = {false};
    for (size_t w = 0; w < plan->worker_count; w++) {
        const struct plan_worker *worker = &plan->workers[w];
        for (size_t g = 0; worker->result && g < worker->gpu_count; g++)
            for (size_t i = 0; i < worker->result->count[g]; i++)
                has[worker->model->facts[g][worker->result->use[g][i].nic]] = true;
    }
    for (size_t fact = 1; fact < ARRAY_LEN(fact_words); fact++)
        if (has[fact])
            buf_printf(out, "  PATH is known %s\n", fact_words[fact]);
}

static void ranks(const struct plan *plan, struct buf *out)
{
    static const char *const titles[] = {"RANK", "WORKER", "GPU", "PCI", "NUMA",
                                         "NIC",  "PATH",   "GDR", "CPUS"};
    struct table table = {.columns = ARRAY_LEN(titles)};
    for (size_t i = 0; i < ARRAY_LEN(titles); i++)
        strlist_add(&table.cells, titles[i]);
    for (size_t w = 0; w < plan->worker_count; w++)
        for (size_t g = 0; g < plan->workers[w].gpu_count; g++)
            add_rank(&table, plan, w, g);
    out->failed |= table.cells.failed;
    if (table.cells.count > ARRAY_LEN(titles)) {
        buf_printf(out, "\nRanks, %u in all%s:\n", plan->world_size,
                   plan->per_pod  ? ", one for the GPUs of a worker"
                   : plan->shared ? ", which share the GPUs of their worker"
                                  : "");
        table_write(&table, "  ", out);
        path_facts(plan, out);
    }
    strlist_done(&table.cells);
}

/* Without ranks on GPUs that are known, what each worker holds. */
static void nics(const struct plan *plan, struct buf *out)
{
    static const char *const titles[] = {"WORKER", "NIC", "PCI", "NUMA", "RAIL"};
    struct table table = {.columns = ARRAY_LEN(titles)};
    for (size_t i = 0; i < ARRAY_LEN(titles); i++)
        strlist_add(&table.cells, titles[i]);
    for (size_t w = 0; w < plan->worker_count; w++)
        for (size_t n = 0; plan->workers[w].plugin_gpus > 0 && n < plan->workers[w].nic_count;
             n++) {
            const struct plan_nic *nic = &plan->workers[w].nics[n];
            const struct device *device = &nic->found.device;
            char pci[24] = "-";
            if (device->pci != PCI_NONE)
                pci_format(device->pci, pci, sizeof pci);
            strlist_addf(&table.cells, "%zu", w);
            strlist_add(&table.cells, nic->found.label);
            strlist_add(&table.cells, pci);
            if (device->numa >= 0)
                strlist_addf(&table.cells, "%d", device->numa);
            else
                strlist_add(&table.cells, "-");
            strlist_addf(&table.cells, "%d", nic->rail);
        }
    out->failed |= table.cells.failed;
    if (table.cells.count > ARRAY_LEN(titles)) {
        buf_printf(out, "\nNICs, for %u ranks on GPUs by the device plugin:\n", plan->world_size);
        table_write(&table, "  ", out);
    }
    strlist_done(&table.cells);
}

static void scores(const struct plan *plan, struct buf *out)
{
    struct buf last = BUF_INIT;
    size_t first = 0;
    buf_add_str(out, "\n");
    for (size_t w = 0; w <= plan->worker_count; w++) { /* equal lines of neighbours are one */
        struct buf line = BUF_INIT;
        if (w < plan->worker_count)
            plan_worker_summary(&plan->workers[w], &line);
        out->failed |= line.failed;
        bool same = w < plan->worker_count && w > 0 && last.data && line.data &&
                    strcmp(last.data, line.data) == 0;
        if (!same && w > 0) {
            if (w - first == 1)
                buf_printf(out, "worker %zu: %s\n", first, last.data ? last.data : "");
            else
                buf_printf(out, "workers %zu to %zu: %s\n", first, w - 1,
                           last.data ? last.data : "");
            first = w;
        }
        buf_done(&last);
        last = line;
    }
    buf_done(&last);
    if (plan->score >= 0)
        buf_printf(out, "score of the job: %.2f\n", plan->score);
}

static void variables(const struct plan_vars *vars, const char *title, bool explain,
                      struct buf *out)
{
    if (vars->count == 0)
        return;
    buf_printf(out, "\n%s:\n", title);
    for (size_t i = 0; i < vars->count; i++) {
        const struct plan_var *var = &vars->list[i];
        buf_printf(out, "  %s=%s\n", var->name, var->value);
        if (!explain)
            continue;
        if (var->fact && var->fact[0])
            buf_printf(out, "      because %s\n", var->fact);
        if (var->reason && var->reason[0])
            buf_printf(out, "      %s\n", var->reason);
        buf_printf(out, "      rule %s%s%s\n", var->rule ? var->rule : "-",
                   var->source ? ", source " : "", var->source ? var->source : "");
    }
}

static void warning_line(const struct warning *warning, const char *workers, void *arg)
{
    buf_printf(arg, "  %s%s%s: %s\n", warning_name(warning->code), workers[0] ? ", " : "", workers,
               warning->detail ? warning->detail : "");
}

static void warning_lines(const struct plan *plan, struct buf *out)
{
    if (plan->warnings.count > 0)
        buf_add_str(out, "\nWarnings:\n");
    out->failed |= warnings_each_wording(&plan->warnings, warning_line, out) < 0;
}

/* warnings: they are shown, too. */
static void plan_lines(const struct preview *preview, bool explain, bool warnings, struct buf *out)
{
    const struct plan *plan = &preview->plan;
    if (plan->refusal.code) {
        buf_printf(out, "\nRefused, %s: %s\n", warning_name(plan->refusal.code),
                   plan->refusal.detail ? plan->refusal.detail : "");
        return;
    }
    ranks(plan, out);
    add_cliques(preview, out);
    nics(plan, out);
    scores(plan, out);
    if (plan->profile)
        buf_printf(out, "\nprofile %s: %s\n", plan->profile->name,
                   plan->profile_fact ? plan->profile_fact : "");
    variables(&plan->env, "Environment of every rank", explain, out);
    variables(&plan->prepend, "Put before what the image has", explain, out);
    if (warnings)
        warning_lines(plan, out);
}

void preview_text(const struct preview_input *input, const struct preview *preview, bool explain,
                  struct buf *out)
{
    head(input, preview, out);
    if (!preview->planned && !preview->prediction.shortage)
        ranks_words(input, out);
    if (!preview->predicted)
        buf_add_str(out, preview->claim
                             ? "With --slices FILE (kubectl get resourceslices,nodes -o json) the "
                               "allocation is predicted.\n"
                             : "With --nodes FILE (kubectl get nodes -o json) it is predicted "
                               "whether nodes take the pods.\n");
    needs(&preview->prediction, input->minor, out);
    if (preview->prediction.placed > 0)
        placed(preview, out);
    for (size_t i = 0; i < preview->prediction.notes.count; i++)
        buf_printf(out, "\nNot predicted: %s\n", preview->prediction.notes.items[i]);
    if (preview->prediction.shortage)
        buf_printf(out, "\nNo room%s: %s\n", preview->absent ? " on the nodes that are there" : "",
                   preview->prediction.shortage);
    else if (preview->planned)
        plan_lines(preview, explain, !spec_has_roles(input->spec), out);
    if (preview->advice)
        buf_printf(out, "\nAdvice: %s.\n", preview->advice);
}

/* ---- JSON ---- */

static json_t *need_json(const struct predict_need *need)
{
    json_t *terms = json_array();
    for (size_t t = 0; t < need->term_count; t++)
        json_array_append_new(terms, json_pack("{s:s, s:s, s:I}", "where", need->terms[t].where,
                                               "term", need->terms[t].text, "ruledOut",
                                               (json_int_t)need->terms[t].ruled_out));
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "requests", need->requests, "devices",
                     (json_int_t)need->devices, "admitted", (json_int_t)need->admitted, "tainted",
                     (json_int_t)need->tainted, "terms", terms);
}

static json_t *prediction_json(const struct prediction *prediction, unsigned minor)
{
    json_t *needs_list = json_array(), *workers = json_array(), *notes = json_array();
    for (size_t i = 0; i < prediction->notes.count; i++)
        json_array_append_new(notes, json_string(prediction->notes.items[i]));
    for (size_t i = 0; i < prediction->need_count; i++)
        json_array_append_new(needs_list, need_json(&prediction->needs[i]));
    for (uint32_t i = 0; i < prediction->placed; i++)
        json_array_append_new(workers, json_pack("{s:i, s:s, s:O}", "worker", (int)i, "node",
                                                 prediction->workers[i].node, "results",
                                                 prediction->workers[i].results));
    return json_pack("{s:o, s:o, s:s?, s:o, s:o}", "requests", needs_list, "workers", workers,
                     "shortage", prediction->shortage, "notPredicted", notes, "kubernetes",
                     json_sprintf("1.%u", predict_minor_followed(minor)));
}

json_t *preview_json(const struct preview_input *input, const struct preview *preview, bool explain)
{
    bool named = spec_has_roles(input->spec);
    json_t *json = json_pack("{s:s, s:i, s:O?}", named ? "role" : "job",
                             named ? input->role->name : input->spec->name, "workers",
                             (int)input->role->workers, "claim", preview->claim);
    if (preview->predicted || preview->prediction.shortage || preview->prediction.notes.count > 0)
        json_object_set_new(json, "prediction",
                            prediction_json(&preview->prediction, input->minor));
    if (claims_alignment(input->role) == CLAIMS_ALIGNED_BY_CLAIM)
        json_object_set_new(json, "rung",
                            json_string(claims_rung_name(claims_rung(input->role, preview->step))));
    if (preview->advice)
        json_object_set_new(json, "advice", json_string(preview->advice));
    if (preview->planned)
        json_object_set_new(json, "plan", plan_to_json(&preview->plan, explain));
    bool failed = false;
    json_t *cliques = preview->planned ? cliques_of(preview, &failed) : NULL;
    if (failed) {
        json_decref(json);
        return NULL;
    }
    if (cliques)
        json_object_set_new(json, "cliques", cliques);
    return json;
}
