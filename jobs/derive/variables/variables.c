/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/plan_private.h"
#include "jobs/ranks/rankenv.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

#define DEFAULT_INTERFACE "eth0"
#define DEFAULT_PORT 29500

/* ---- values of the tables ---- */

/* Whether two workers show different ones, as with hostNetwork on machines of several kinds. */
static void compare_interfaces(struct planning *p)
{
    for (size_t w = 0; w < p->plan->worker_count && !p->interfaces_differ; w++) {
        const char *one = p->plan->workers[w].probe.interface;
        p->interfaces_differ = one && p->interface && strcmp(one, p->interface) != 0;
        p->interface = one ? one : p->interface;
    }
}

/* The workers' own, where those that were asked say the same: with hostNetwork, and in clusters
 * whose network plugin says so, it has another name. Where they differ each worker has its own
 * (set_own_interface). */
static const char *interface_of(const struct planning *p)
{
    const char *shown = p->interface;
    if (p->in->pod_interface)
        return p->in->pod_interface;
    if (p->interfaces_differ)
        shown = p->own ? p->own->probe.interface : NULL;
    return shown ? shown : DEFAULT_INTERFACE;
}

/* The first of the profile's directories that a probed pod shows to hold its file. */
static const char *directory_of(const struct planning *p)
{
    const json_t *list = p->plan->profile->directories;
    for (size_t d = 0; d < json_array_size(list); d++)
        for (size_t w = 0; w < p->plan->worker_count; w++) {
            const char *directory = json_string_value(json_array_get(list, d));
            char path[512];
            if (!directory || !p->plan->profile->directory_file)
                continue;
            snprintf(path, sizeof path, "%s/%s", directory, p->plan->profile->directory_file);
            if (probe_file(&p->plan->workers[w].probe, path) == PROBE_YES)
                return directory;
        }
    const char *first = json_string_value(json_array_get(list, 0));
    return first ? first : "";
}

/* The interfaces of the data NICs in the pod, of the first worker. */
static void add_interfaces(const struct planning *p, struct buf *out)
{
    const struct plan_worker *worker = &p->plan->workers[0];
    for (size_t n = 0; n < worker->nic_count; n++) {
        const struct device *d = &worker->nics[n].device;
        const char *name = d->pod_name ? d->pod_name : d->ifname;
        buf_printf(out, "%s%s", n ? "," : "", name ? name : d->name);
    }
}

/* That of rank 0. */
static const char *first_pod(const struct planning *p)
{
    const char *pod = p->plan->workers[p->in->rank_order ? p->in->rank_order[0] : 0].pod;
    return pod ? pod : "localhost";
}

static void add_placeholder(const struct planning *p, const char *name, size_t length,
                            struct buf *out)
{
    const struct plan_input *in = p->in;
    char key[32];
    snprintf(key, sizeof key, "%.*s", (int)length, name);
    if (strcmp(key, "podInterface") == 0)
        buf_add_str(out, interface_of(p));
    else if (strcmp(key, "socketInterface") == 0)
        buf_printf(out, "%s%s", p->plan->profile->exact_interface ? "=" : "", interface_of(p));
    else if (strcmp(key, "masterAddr") == 0)
        buf_add_str(out, in->master_addr ? in->master_addr : first_pod(p));
    else if (strcmp(key, "masterPort") == 0)
        buf_printf(out, "%u", in->master_port ? in->master_port : DEFAULT_PORT);
    else if (strcmp(key, "directory") == 0)
        buf_add_str(out, directory_of(p));
    else if (strcmp(key, "nics") == 0)
        add_interfaces(p, out);
}

static const char *expand(const struct planning *p, const char *value)
{
    struct buf out = BUF_INIT;
    for (const char *open; (open = strstr(value, "${")) != NULL;) {
        const char *close = strchr(open, '}');
        if (!close)
            break;
        buf_add(&out, value, (size_t)(open - value));
        add_placeholder(p, open + 2, (size_t)(close - open - 2), &out);
        value = close + 1;
    }
    buf_add_str(&out, value);
    const char *text = plan_notes_text(p->notes, "%s", out.failed || !out.data ? "" : out.data);
    p->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

static bool mpi_rdma(const struct planning *p)
{
    bool gpus = false;
    if (p->in->mpi == SPEC_TRANSPORT_RDMA)
        return true;
    for (size_t w = 0; w < p->plan->worker_count; w++)
        gpus |= p->plan->workers[w].gpu_count + p->plan->workers[w].plugin_gpus > 0;
    return p->in->mpi != SPEC_TRANSPORT_TCP && !gpus && p->plan->profile->data == PROFILE_RDMA;
}

/* True when the row's condition holds. */
static bool applies(const struct planning *p, const json_t *when)
{
    const char *below = value_text(when, "ncclBelow");
    const char *from = value_text(when, "ncclFrom");
    const char *mpi = value_text(when, "mpi");
    const char *nics = value_text(when, "nics");
    const json_t *types = json_object_get(when, "instanceType");
    const json_t *others = json_object_get(when, "instanceTypeNot");
    const char *type = plan_input_instance_type(p->in, p->plan->workers[0].node);
    if ((types && !profile_match_any(type, types)) || (others && profile_match_any(type, others)) ||
        (json_is_true(json_object_get(when, "railIsolated")) && !p->plan->profile->rail_isolated) ||
        (nics && strcmp(expand(p, "${nics}"), nics) != 0))
        return false;
    return (!below || p->plan->version < nccl_version_parse(below)) &&
           (!from || p->plan->version >= nccl_version_parse(from)) &&
           (!mpi || (strcmp(mpi, "rdma") == 0) == mpi_rdma(p));
}

/* A variable that names a file which a probed worker lacks is left out. */
static bool file_there(struct planning *p, const char *name, const char *path)
{
    bool there = true;
    for (size_t w = 0; w < p->plan->worker_count; w++) {
        if (probe_file(&p->plan->workers[w].probe, path) != PROBE_NO)
            continue;
        warnings_add(&p->notes->warnings, WARN_PROFILE_FILE_MISSING, (int32_t)w, "%s=%s", name,
                     path);
        there = false;
    }
    return there;
}

/* What no machine has confirmed says so beside its source. */
static const char *marked_source(const struct planning *p, const json_t *row, const char *source)
{
    const char *mark = value_text(row, "unverified");
    if (!mark && !json_object_get(row, "source"))
        mark = p->plan->profile->unverified;
    return mark ? plan_notes_text(p->notes, "%s (%s)", source, mark) : source;
}

/* With its name NCCL would fail where RDMA does not work, and the job may use TCP there. */
static bool keeps_from_tcp(const struct planning *p, const char *name)
{
    return p->in->tcp_will_do && p->plan->profile->data == PROFILE_RDMA &&
           strcmp(name, "NCCL_NET") == 0;
}

static void add_rows(struct planning *p, const json_t *rows, struct plan_vars *vars,
                     enum plan_origin origin, const char *rule, const char *fact,
                     const char *source)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *name = value_text(row, "name");
        const char *own = value_text(row, "source");
        if (!applies(p, json_object_get(row, "when")) || keeps_from_tcp(p, name))
            continue;
        const char *value = expand(p, value_text(row, "value"));
        if (json_is_true(json_object_get(row, "file")) && !file_there(p, name, value))
            continue;
        plan_vars_set(vars, (struct plan_var){.name = name,
                                              .value = value,
                                              .origin = origin,
                                              .rule = rule,
                                              .fact = fact,
                                              .reason = value_text(row, "reason"),
                                              .source = marked_source(p, row, own ? own : source)});
    }
}

/* The profile's own files tell that the pod has the vendor's library. */
static void check_confirmation(struct planning *p)
{
    const json_t *paths = p->plan->profile->confirm;
    size_t count = json_array_size(paths);
    for (size_t w = 0; w < p->plan->worker_count && count > 0; w++) {
        const struct probe *probe = &p->plan->workers[w].probe;
        bool found = !probe->present || !probe->files;
        for (size_t i = 0; i < count; i++)
            found |= probe_file(probe, expand(p, json_string_value(json_array_get(paths, i)))) ==
                     PROBE_YES;
        if (!found && !warnings_have(&p->notes->warnings, WARN_PROFILE_FILE_MISSING, (int32_t)w))
            warnings_add(&p->notes->warnings, WARN_PROFILE_FILE_MISSING, (int32_t)w,
                         "%s: the image lacks what profile %s needs",
                         expand(p, json_string_value(json_array_get(paths, 0))),
                         p->plan->profile->name);
    }
}

/* ---- NVLink between nodes ---- */

enum cliques { CLIQUES_SAME, CLIQUES_DIFFER, CLIQUES_UNKNOWN };

static enum cliques compare_cliques(const struct planning *p)
{
    const char *first = p->plan->workers[0].clique;
    enum cliques result = first ? CLIQUES_SAME : CLIQUES_UNKNOWN;
    for (size_t w = 1; w < p->plan->worker_count; w++) {
        const char *other = p->plan->workers[w].clique;
        if (first && other && strcmp(first, other) != 0)
            return CLIQUES_DIFFER;
        if (!other)
            result = CLIQUES_UNKNOWN;
    }
    return result;
}

/* By its claims, or by what its pod shows where the claims are not known. */
static bool has_channel(const struct plan_worker *worker)
{
    return worker->channel || worker->probe.imex == PROBE_YES;
}

/* Where only part of the job is known (a pod that asks for itself) NCCL compares the cliques. */
static const char *set_by_itself(struct planning *p, enum cliques cliques)
{
    if (cliques == CLIQUES_DIFFER)
        warnings_add(&p->notes->warnings, WARN_IMEX_CLIQUE_MISMATCH, WORKER_NONE,
                     "the nodes' nvidia.com/gpu.clique labels differ; NCCL decides by itself");
    else if (p->plan->worker_count > 1)
        warnings_add(&p->notes->warnings, WARN_IMEX_CLIQUE_MISMATCH, WORKER_NONE,
                     "not every node's nvidia.com/gpu.clique label is known; NCCL decides by "
                     "itself");
    return cliques == CLIQUES_DIFFER ? "IMEX channels, but nodes of different NVLink domains"
                                     : "IMEX channels, and NVLink domains that are not all known";
}

static void set_mnnvl(struct planning *p)
{
    bool channels = true;
    const char *fact = "an IMEX channel in every worker, one nvidia.com/gpu.clique", *value = "1";
    if (!p->plan->workers[0].devices.c2c) /* with or without NICs */
        return;
    for (size_t w = 0; w < p->plan->worker_count; w++)
        channels &= has_channel(&p->plan->workers[w]);
    enum cliques cliques = compare_cliques(p);
    if (!channels) {
        value = "0";
        fact = "no IMEX channel in a claim or a pod: NCCL would fail at init";
        warnings_add(&p->notes->warnings, WARN_IMEX_CHANNEL_MISSING, WORKER_NONE,
                     "no compute-domain channel in a claim or as a device file; NVLink between "
                     "nodes is off");
    } else if (cliques != CLIQUES_SAME) {
        value = "2";
        fact = set_by_itself(p, cliques);
    }
    struct plan_var var = {
        .name = "NCCL_MNNVL_ENABLE",
        .value = value,
        .origin = PLAN_BY_RULE,
        .rule = "mnnvl",
        .fact = fact,
        .reason = profile_rule(p->in->profiles, "mnnvl"),
        .source = "NCCL src/mnnvl.cc",
    };
    plan_vars_set(&p->plan->env, var);
    if (value[0] != '1')
        return;
    var.name = "NCCL_CUMEM_ENABLE";
    var.reason = "NVLink between nodes needs it";
    plan_vars_set(&p->plan->env, var);
}

/* ---- the common environment ---- */

/* What the user sets himself is handled below. */
static void drop_ruled_out(struct planning *p)
{
    struct plan_vars *env = &p->plan->env;
    const char *user = NULL;
    for (size_t i = env->count; i-- > 0;) {
        const struct plan_var *var = &env->list[i];
        if (!ncclenv_user(p, var->name, &user) && ncclenv_ruled_out(p, var->name, var->value))
            plan_vars_drop(env, var->name);
    }
}

static void add_user(struct planning *p)
{
    for (char *const *item = p->in->user_env; item && *item; item++) {
        const char *equals = strchr(*item, '=');
        if (!equals || equals == *item)
            continue;
        const char *name = plan_notes_text(p->notes, "%.*s", (int)(equals - *item), *item);
        const struct plan_var *ours = plan_vars_find(&p->plan->env, name);
        if (ours && strcmp(ours->value, equals + 1) != 0)
            warnings_add(&p->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE,
                         "%s=%s (%s: %s)", name, equals + 1, ours->rule, ours->value);
        plan_vars_set(&p->plan->env,
                      (struct plan_var){.name = name,
                                        .value = equals + 1,
                                        .origin = PLAN_BY_USER,
                                        .rule = "user",
                                        .fact = "set by the user",
                                        .reason = profile_rule(p->in->profiles, "user"),
                                        .source = ""});
    }
}

/* The job is not to run without RDMA, and NCCL's own error names neither variable. */
static void warn_disabled(struct planning *p)
{
    const struct plan_var *net = plan_vars_find(&p->plan->env, "NCCL_NET");
    const char *off = NULL;
    if (net && strcasecmp(net->value, "IB") == 0 && ncclenv_user(p, "NCCL_IB_DISABLE", &off) &&
        off[0] && strcmp(off, "0") != 0)
        warnings_add(&p->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE,
                     "NCCL_IB_DISABLE=%s: NCCL finds no network beside NCCL_NET=%s, and ends; "
                     "network: any lets it use TCP",
                     off, net->value);
}

/* Each worker reaches the others through what it claimed, or all use the pod network. */
static bool tcp_on_nics(const struct plan *plan)
{
    for (size_t w = 0; w < plan->worker_count; w++)
        if (!plan->workers[w].tcp_interfaces)
            return false;
    return true;
}

void ncclenv_common(struct planning *p)
{
    const struct profile *profile = p->plan->profile;
    compare_interfaces(p);
    add_rows(p, p->in->profiles->common, &p->plan->env, PLAN_BY_COMMON, "common", "every job", "");
    add_rows(p, profile->variables, &p->plan->env, PLAN_BY_PROFILE, profile->name,
             p->plan->profile_fact, profile->source);
    add_rows(p, profile->prepend, &p->plan->prepend, PLAN_BY_PROFILE, profile->name,
             p->plan->profile_fact, profile->source);
    check_confirmation(p);
    p->plan->tcp_on_nics = tcp_on_nics(p->plan);
    set_mnnvl(p);
    ncclenv_script(p);
    ncclenv_inspector(p);
    drop_ruled_out(p);
    add_user(p);
    warn_disabled(p);
}

/* ---- a worker's own ---- */

static bool all_named(const struct plan_worker *worker)
{
    for (size_t n = 0; n < worker->nic_count; n++)
        if (!worker->nics[n].ibdev)
            return false;
    return worker->nic_count > 0;
}

/* A device whose ports are not known is used by its first. */
static void add_ports(const struct plan_nic *nic, const char *separator, struct buf *out)
{
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    size_t count = plan_nic_ports(nic, ports);
    if (count == 0)
        buf_printf(out, "%s%s:1", separator, nic->ibdev);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s:%u", i ? "," : separator, nic->ibdev, ports[i]->number);
}

static const char *device_list(struct planning *p, const struct plan_worker *worker,
                               const char *prefix)
{
    struct buf out = BUF_INIT;
    buf_add_str(&out, prefix);
    for (size_t n = 0; n < worker->nic_count; n++)
        add_ports(&worker->nics[n], n ? "," : "", &out);
    const char *text = plan_notes_text(p->notes, "%s", out.data ? out.data : "");
    p->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

static bool wants_hca_list(const struct planning *p)
{
    if (p->in->hca_list == SPEC_HCA_NEVER || p->plan->profile->data != PROFILE_RDMA)
        return false;
    return p->in->hca_list == SPEC_HCA_ALWAYS || p->plan->profile->hca_list;
}

/* Two ports of one card that the vendor's names put on different rails. NCCL_NET_MERGE_POLICY, of
 * 2.30.7, would do the same, but older versions ignore it, and the version is often not known. */
static void set_merge(struct planning *p, struct plan_worker *worker)
{
    bool level = p->plan->version >= NCCL_VERSION(2, 24, 0);
    if (!p->plan->profile->merge_rails || p->plan->version < NCCL_VERSION(2, 20, 0))
        return;
    for (size_t n = 1; n < worker->nic_count; n++) {
        const struct plan_nic *a = &worker->nics[n - 1], *b = &worker->nics[n];
        if (a->device.pci == PCI_NONE || a->device.pci >> 3 != b->device.pci >> 3 ||
            a->named_rail < 0 || a->named_rail == b->named_rail)
            continue;
        ncclenv_set_own(p, &worker->env, level ? "NCCL_NET_MERGE_LEVEL" : "NCCL_IB_MERGE_NICS",
                        level ? "LOC" : "0", "merge-rails", b->device.name);
        return;
    }
}

/* HIP heeds its own. NULL: of another vendor, whose variable is not known. */
static const char *visible_name(const struct plan_worker *worker)
{
    const char *vendor = worker->gpu_count > 0 ? worker->gpus[0].device.vendor : NULL;
    if (!vendor || strcmp(vendor, "NVIDIA") == 0)
        return "CUDA_VISIBLE_DEVICES";
    return strcmp(vendor, "AMD") == 0 ? "HIP_VISIBLE_DEVICES" : NULL;
}

static bool sees_others(const struct plan_worker *worker)
{
    return worker->probe.visible_gpus > (int32_t)worker->gpu_count;
}

/* CUDA's number of the GPU: its place among those that the pod sees. */
static size_t cuda_number(const struct plan_worker *worker, size_t g)
{
    uint64_t own = worker->gpus[g].device.pci;
    json_t *entry = NULL;
    size_t i;
    if (!sees_others(worker) || own == PCI_NONE)
        return g;
    json_array_foreach(worker->probe.gpus, i, entry)
    {
        const char *pci = value_text(entry, "pci");
        if (pci && pci_parse(pci) == own)
            return i;
    }
    return g;
}

/* In our order, which is that of addresses, whatever the order of the library is. */
static const char *visible_devices(struct planning *p, const struct plan_worker *worker)
{
    struct buf out = BUF_INIT;
    bool uuids = worker->mig || sees_others(worker);
    bool hip = inventory_has_hip_numbers(&worker->inventory);
    for (size_t g = 0; g < worker->gpu_count; g++)
        uuids &= worker->gpus[g].device.uuid != NULL;
    for (size_t g = 0; g < worker->gpu_count; g++) {
        buf_printf(&out, "%s", g ? "," : "");
        if (hip)
            buf_add_str(&out, inventory_hip_number(&worker->inventory, g));
        else if (uuids)
            buf_add_str(&out, worker->gpus[g].device.uuid);
        else
            buf_printf(&out, "%zu", cuda_number(worker, g));
    }
    const char *text = plan_notes_text(p->notes, "%s", out.data ? out.data : "");
    p->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

static void set_tcp(struct planning *p, struct plan_worker *worker)
{
    const char *names = worker->tcp_interfaces, *fact = "claimed NICs with addresses, none of RDMA";
    if (!p->plan->tcp_on_nics)
        return;
    ncclenv_set_own(p, &worker->env, "NCCL_SOCKET_IFNAME", plan_notes_text(p->notes, "=%s", names),
                    "tcp-nics", fact);
    ncclenv_set_own(p, &worker->env, "OMPI_MCA_btl_tcp_if_include", names, "tcp-nics", fact);
    ncclenv_set_own(p, &worker->env, "UCX_NET_DEVICES", names, "tcp-nics", fact);
}

/* The rows that name the interface, unless something else has set their variables. */
static void set_own_rows(struct planning *p, struct plan_worker *worker, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *name = value_text(row, "name"), *value = value_text(row, "value");
        const struct plan_var *common = plan_vars_find(&p->plan->env, name);
        if (!common || (!strstr(value, "${podInterface}") && !strstr(value, "${socketInterface}")))
            continue;
        const char *of_all = expand(p, value);
        p->own = worker;
        const char *own = expand(p, value);
        p->own = NULL;
        if (strcmp(common->value, of_all) == 0 && strcmp(own, of_all) != 0)
            ncclenv_set_own(p, &worker->env, name, own, "own-interface",
                            "the interface of the worker's default route; the workers' differ");
    }
}

static void set_own_interface(struct planning *p, struct plan_worker *worker)
{
    if (p->in->pod_interface || !worker->probe.interface || !p->interfaces_differ)
        return;
    set_own_rows(p, worker, p->in->profiles->common);
    set_own_rows(p, worker, p->plan->profile->variables);
}

/* ---- the place of a rank ---- */

struct place_row {
    enum rankenv_torch number;
    const char *fact;
};

static const struct place_row one_a_pod[] = {
    {RANKENV_RANK, "one rank a pod"},
    {RANKENV_WORLD_SIZE, "one rank a pod"},
};

static const struct place_row one_a_gpu[] = {
    {RANKENV_RANK, "worker-major"},
    {RANKENV_LOCAL_RANK, "place among the worker's GPUs"},
    {RANKENV_WORLD_SIZE, "one rank a GPU"},
    {RANKENV_LOCAL_WORLD_SIZE, "one rank a GPU"},
};

/* As the agent will set it (jobs/ranks/rankenv.h). */
static void set_place(struct planning *p, struct plan_vars *vars, const struct rank_place *place,
                      const struct place_row *rows, size_t count)
{
    struct rankenv_number numbers[RANKENV_TORCH_COUNT];
    rankenv_torch(place, p->plan->world_size, numbers);
    for (size_t i = 0; i < count; i++) {
        const struct rankenv_number *number = &numbers[rows[i].number];
        ncclenv_set_place(p, vars, number->name, plan_notes_text(p->notes, "%u", number->value),
                          rows[i].fact);
    }
}

void ncclenv_worker(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    set_own_interface(p, worker);
    if (all_named(worker) && wants_hca_list(p))
        ncclenv_set_own(p, &worker->env, "NCCL_IB_HCA", device_list(p, worker, "="), "hca-list",
                        "the claimed NICs");
    if (all_named(worker) && mpi_rdma(p))
        ncclenv_set_own(p, &worker->env, "UCX_NET_DEVICES", device_list(p, worker, ""), "ucx-rdma",
                        "the claimed NICs");
    set_tcp(p, worker);
    ncclenv_gid(p, w);
    set_merge(p, worker);
    if (!p->plan->per_pod)
        return;
    if (worker->gpu_count > 0 && visible_name(worker))
        ncclenv_set_own(p, &worker->env, visible_name(worker), visible_devices(p, worker),
                        "cuda-devices", "the claimed GPUs");
    const struct rank_place place = {.rank = worker->first_rank, .worker = w, .local_size = 1};
    set_place(p, &worker->env, &place, one_a_pod, ARRAY_LEN(one_a_pod));
}

void ncclenv_ranks(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    const char *all = visible_devices(p, worker);
    if (p->plan->per_pod || worker->gpu_count == 0)
        return;
    worker->rank_env = calloc(worker->gpu_count, sizeof *worker->rank_env);
    if (!worker->rank_env) {
        p->notes->pool.failed = true;
        return;
    }
    for (size_t g = 0; g < worker->gpu_count; g++) {
        struct plan_vars *vars = &worker->rank_env[g];
        const struct device *gpu = &worker->gpus[g].device;
        bool single = gpu->kind == DEVICE_MIG && gpu->uuid;
        const struct rank_place place = {
            .rank = worker->first_rank + (uint32_t)g,
            .worker = w,
            .local_rank = single ? 0 : (uint32_t)g, /* it sees its device alone */
            .local_size = (uint32_t)worker->gpu_count,
        };
        set_place(p, vars, &place, one_a_gpu, ARRAY_LEN(one_a_gpu));
        if (visible_name(worker))
            ncclenv_set_own(p, vars, visible_name(worker), single ? gpu->uuid : all, "cuda-devices",
                            "the claimed GPUs");
    }
}
