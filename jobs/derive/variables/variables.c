/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/variables/variables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/nccl/nccl_topology.h"
#include "jobs/derive/variables/variables_private.h"
#include "jobs/ranks/rankenv.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

DEFINE_CLEANUP(struct variables, variables_done)

#define DEFAULT_INTERFACE "eth0"
#define DEFAULT_PORT 29500

/* ---- values of the tables ---- */

/* Whether two workers show different ones, as with hostNetwork on machines of several kinds. */
static void compare_interfaces(struct making *m)
{
    for (size_t w = 0; w < m->in->worker_count && !m->interfaces_differ; w++) {
        const char *one = m->inventories[w].probe.interface;
        m->interfaces_differ = one && m->interface && strcmp(one, m->interface) != 0;
        m->interface = one ? one : m->interface;
    }
}

/* The workers' own, where those that were asked say the same: with hostNetwork, and in clusters
 * whose network plugin says so, it has another name. Where they differ each worker has its own
 * (set_own_interface). */
static const char *interface_of(const struct making *m)
{
    const char *shown = m->interface;
    if (m->in->pod_interface)
        return m->in->pod_interface;
    if (m->interfaces_differ)
        shown = m->own ? m->own->probe.interface : NULL;
    return shown ? shown : DEFAULT_INTERFACE;
}

/* The first of the profile's directories that a probed pod shows to hold its file. */
static const char *directory_of(const struct making *m)
{
    const json_t *list = m->profile->directories;
    for (size_t d = 0; d < json_array_size(list); d++)
        for (size_t w = 0; w < m->in->worker_count; w++) {
            const char *directory = json_string_value(json_array_get(list, d));
            char path[512];
            if (!directory || !m->profile->directory_file)
                continue;
            snprintf(path, sizeof path, "%s/%s", directory, m->profile->directory_file);
            if (probe_file(&m->inventories[w].probe, path) == PROBE_YES)
                return directory;
        }
    const char *first = json_string_value(json_array_get(list, 0));
    return first ? first : "";
}

/* The interfaces of the data NICs in the pod, of the first worker. */
static void add_interfaces(const struct making *m, struct buf *out)
{
    const struct devices *devices = &m->devices[0];
    for (size_t n = 0; n < devices->nic_count; n++) {
        const struct device *d = &devices->nics[n].found.device;
        const char *name = d->pod_name ? d->pod_name : d->ifname;
        buf_printf(out, "%s%s", n ? "," : "", name ? name : d->name);
    }
}

/* That of rank 0. */
static const char *first_pod(const struct making *m)
{
    const char *pod = m->inventories[m->in->rank_order ? m->in->rank_order[0] : 0].pod;
    return pod ? pod : "localhost";
}

static void add_placeholder(const struct making *m, const char *name, size_t length,
                            struct buf *out)
{
    const struct plan_input *in = m->in;
    char key[32];
    snprintf(key, sizeof key, "%.*s", (int)length, name);
    if (strcmp(key, "podInterface") == 0)
        buf_add_str(out, interface_of(m));
    else if (strcmp(key, "socketInterface") == 0)
        buf_printf(out, "%s%s", m->profile->exact_interface ? "=" : "", interface_of(m));
    else if (strcmp(key, "masterAddr") == 0)
        buf_add_str(out, in->master_addr ? in->master_addr : first_pod(m));
    else if (strcmp(key, "masterPort") == 0)
        buf_printf(out, "%u", in->master_port ? in->master_port : DEFAULT_PORT);
    else if (strcmp(key, "directory") == 0)
        buf_add_str(out, directory_of(m));
    else if (strcmp(key, "nics") == 0)
        add_interfaces(m, out);
}

static const char *expand(const struct making *m, const char *value)
{
    struct buf out = BUF_INIT;
    for (const char *open; (open = strstr(value, "${")) != NULL;) {
        const char *close = strchr(open, '}');
        if (!close)
            break;
        buf_add(&out, value, (size_t)(open - value));
        add_placeholder(m, open + 2, (size_t)(close - open - 2), &out);
        value = close + 1;
    }
    buf_add_str(&out, value);
    const char *text = plan_notes_text(m->notes, "%s", out.failed || !out.data ? "" : out.data);
    m->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

static bool mpi_rdma(const struct making *m)
{
    bool gpus = false;
    if (m->in->mpi == SPEC_TRANSPORT_RDMA)
        return true;
    for (size_t w = 0; w < m->in->worker_count; w++)
        gpus |= m->inventories[w].gpu_count + m->inventories[w].plugin_gpus > 0;
    return m->in->mpi != SPEC_TRANSPORT_TCP && !gpus && m->profile->data == PROFILE_RDMA;
}

/* True when the row's condition holds. */
static bool applies(const struct making *m, const json_t *when)
{
    const char *below = value_text(when, "ncclBelow");
    const char *from = value_text(when, "ncclFrom");
    const char *mpi = value_text(when, "mpi");
    const char *nics = value_text(when, "nics");
    const json_t *types = json_object_get(when, "instanceType");
    const json_t *others = json_object_get(when, "instanceTypeNot");
    const char *type = plan_input_instance_type(m->in, m->inventories[0].node);
    if ((types && !profile_match_any(type, types)) || (others && profile_match_any(type, others)) ||
        (json_is_true(json_object_get(when, "railIsolated")) && !m->profile->rail_isolated) ||
        (nics && strcmp(expand(m, "${nics}"), nics) != 0))
        return false;
    return (!below || m->version < nccl_version_parse(below)) &&
           (!from || m->version >= nccl_version_parse(from)) &&
           (!mpi || (strcmp(mpi, "rdma") == 0) == mpi_rdma(m));
}

/* A variable that names a file which a probed worker lacks is left out. */
static bool file_there(struct making *m, const char *name, const char *path)
{
    bool there = true;
    for (size_t w = 0; w < m->in->worker_count; w++) {
        if (probe_file(&m->inventories[w].probe, path) != PROBE_NO)
            continue;
        warnings_add(&m->notes->warnings, WARN_PROFILE_FILE_MISSING, (int32_t)w, "%s=%s", name,
                     path);
        there = false;
    }
    return there;
}

/* What no machine has confirmed says so beside its source. */
static const char *marked_source(const struct making *m, const json_t *row, const char *source)
{
    const char *mark = value_text(row, "unverified");
    if (!mark && !json_object_get(row, "source"))
        mark = m->profile->unverified;
    return mark ? plan_notes_text(m->notes, "%s (%s)", source, mark) : source;
}

/* With its name NCCL would fail where RDMA does not work, and the job may use TCP there. */
static bool keeps_from_tcp(const struct making *m, const char *name)
{
    return m->in->tcp_will_do && m->profile->data == PROFILE_RDMA && strcmp(name, "NCCL_NET") == 0;
}

static void add_rows(struct making *m, const json_t *rows, struct plan_vars *vars,
                     enum plan_origin origin, const char *rule, const char *fact,
                     const char *source)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *name = value_text(row, "name");
        const char *own = value_text(row, "source");
        if (!applies(m, json_object_get(row, "when")) || keeps_from_tcp(m, name))
            continue;
        const char *value = expand(m, value_text(row, "value"));
        if (json_is_true(json_object_get(row, "file")) && !file_there(m, name, value))
            continue;
        plan_vars_set(vars, (struct plan_var){.name = name,
                                              .value = value,
                                              .origin = origin,
                                              .rule = rule,
                                              .fact = fact,
                                              .reason = value_text(row, "reason"),
                                              .source = marked_source(m, row, own ? own : source)});
    }
}

/* The profile's own files tell that the pod has the vendor's library. */
static void check_confirmation(struct making *m)
{
    const json_t *paths = m->profile->confirm;
    size_t count = json_array_size(paths);
    for (size_t w = 0; w < m->in->worker_count && count > 0; w++) {
        const struct probe *probe = &m->inventories[w].probe;
        bool found = !probe->present || !probe->files;
        for (size_t i = 0; i < count; i++)
            found |= probe_file(probe, expand(m, json_string_value(json_array_get(paths, i)))) ==
                     PROBE_YES;
        if (!found && !warnings_have(&m->notes->warnings, WARN_PROFILE_FILE_MISSING, (int32_t)w))
            warnings_add(&m->notes->warnings, WARN_PROFILE_FILE_MISSING, (int32_t)w,
                         "%s: the image lacks what profile %s needs",
                         expand(m, json_string_value(json_array_get(paths, 0))), m->profile->name);
    }
}

/* ---- NVLink between nodes ---- */

enum cliques { CLIQUES_SAME, CLIQUES_DIFFER, CLIQUES_UNKNOWN };

static enum cliques compare_cliques(const struct making *m)
{
    const char *first = m->inventories[0].clique;
    enum cliques result = first ? CLIQUES_SAME : CLIQUES_UNKNOWN;
    for (size_t w = 1; w < m->in->worker_count; w++) {
        const char *other = m->inventories[w].clique;
        if (first && other && strcmp(first, other) != 0)
            return CLIQUES_DIFFER;
        if (!other)
            result = CLIQUES_UNKNOWN;
    }
    return result;
}

/* By its claims, or by what its pod shows where the claims are not known. */
static bool has_channel(const struct inventory *inventory)
{
    return inventory->channel || inventory->probe.imex == PROBE_YES;
}

/* Where only part of the job is known (a pod that asks for itself) NCCL compares the cliques. */
static const char *set_by_itself(struct making *m, enum cliques cliques)
{
    if (cliques == CLIQUES_DIFFER)
        warnings_add(&m->notes->warnings, WARN_IMEX_CLIQUE_MISMATCH, WORKER_NONE,
                     "the nodes' nvidia.com/gpu.clique labels differ; NCCL decides by itself");
    else if (m->in->worker_count > 1)
        warnings_add(&m->notes->warnings, WARN_IMEX_CLIQUE_MISMATCH, WORKER_NONE,
                     "not every node's nvidia.com/gpu.clique label is known; NCCL decides by "
                     "itself");
    return cliques == CLIQUES_DIFFER ? "IMEX channels, but nodes of different NVLink domains"
                                     : "IMEX channels, and NVLink domains that are not all known";
}

static void set_mnnvl(struct making *m)
{
    bool channels = true;
    const char *fact = "an IMEX channel in every worker, one nvidia.com/gpu.clique", *value = "1";
    if (!m->devices[0].c2c) /* with or without NICs */
        return;
    for (size_t w = 0; w < m->in->worker_count; w++)
        channels &= has_channel(&m->inventories[w]);
    enum cliques cliques = compare_cliques(m);
    if (!channels) {
        value = "0";
        fact = "no IMEX channel in a claim or a pod: NCCL would fail at init";
        warnings_add(&m->notes->warnings, WARN_IMEX_CHANNEL_MISSING, WORKER_NONE,
                     "no compute-domain channel in a claim or as a device file; NVLink between "
                     "nodes is off");
    } else if (cliques != CLIQUES_SAME) {
        value = "2";
        fact = set_by_itself(m, cliques);
    }
    struct plan_var var = {
        .name = "NCCL_MNNVL_ENABLE",
        .value = value,
        .origin = PLAN_BY_RULE,
        .rule = "mnnvl",
        .fact = fact,
        .reason = profile_rule(m->in->profiles, "mnnvl"),
        .source = "NCCL src/mnnvl.cc",
    };
    plan_vars_set(&m->vars->env, var);
    if (value[0] != '1')
        return;
    var.name = "NCCL_CUMEM_ENABLE";
    var.reason = "NVLink between nodes needs it";
    plan_vars_set(&m->vars->env, var);
}

/* ---- the common environment ---- */

/* What the user sets himself is handled below. */
static void drop_ruled_out(struct making *m)
{
    struct plan_vars *env = &m->vars->env;
    const char *user = NULL;
    for (size_t i = env->count; i-- > 0;) {
        const struct plan_var *var = &env->list[i];
        if (!variables_user(m->in, var->name, &user) && making_ruled_out(m, var->name, var->value))
            plan_vars_drop(env, var->name);
    }
}

static void add_user(struct making *m)
{
    for (char *const *item = m->in->user_env; item && *item; item++) {
        const char *equals = strchr(*item, '=');
        if (!equals || equals == *item)
            continue;
        const char *name = plan_notes_text(m->notes, "%.*s", (int)(equals - *item), *item);
        const struct plan_var *ours = plan_vars_find(&m->vars->env, name);
        if (ours && strcmp(ours->value, equals + 1) != 0)
            warnings_add(&m->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE,
                         "%s=%s (%s: %s)", name, equals + 1, ours->rule, ours->value);
        plan_vars_set(&m->vars->env,
                      (struct plan_var){.name = name,
                                        .value = equals + 1,
                                        .origin = PLAN_BY_USER,
                                        .rule = "user",
                                        .fact = "set by the user",
                                        .reason = profile_rule(m->in->profiles, "user"),
                                        .source = ""});
    }
}

/* The job is not to run without RDMA, and NCCL's own error names neither variable. */
static void warn_disabled(struct making *m)
{
    const struct plan_var *net = plan_vars_find(&m->vars->env, "NCCL_NET");
    const char *off = NULL;
    if (net && strcasecmp(net->value, "IB") == 0 &&
        variables_user(m->in, "NCCL_IB_DISABLE", &off) && off[0] && strcmp(off, "0") != 0)
        warnings_add(&m->notes->warnings, WARN_USER_OVERRIDES_PROFILE, WORKER_NONE,
                     "NCCL_IB_DISABLE=%s: NCCL finds no network beside NCCL_NET=%s, and ends; "
                     "network: any lets it use TCP",
                     off, net->value);
}

/* Each worker reaches the others through what it claimed, or all use the pod network. */
static bool tcp_on_nics(const struct making *m)
{
    for (size_t w = 0; w < m->in->worker_count; w++)
        if (!m->devices[w].tcp_interfaces)
            return false;
    return true;
}

static void set_common(struct making *m)
{
    const struct profile *profile = m->profile;
    compare_interfaces(m);
    add_rows(m, m->in->profiles->common, &m->vars->env, PLAN_BY_COMMON, "common", "every job", "");
    add_rows(m, profile->variables, &m->vars->env, PLAN_BY_PROFILE, profile->name, m->fact,
             profile->source);
    add_rows(m, profile->prepend, &m->vars->prepend, PLAN_BY_PROFILE, profile->name, m->fact,
             profile->source);
    check_confirmation(m);
    m->tcp_on_nics = tcp_on_nics(m);
    set_mnnvl(m);
    making_script(m);
    making_inspector(m);
    drop_ruled_out(m);
    add_user(m);
    warn_disabled(m);
}

/* ---- a worker's own ---- */

static bool all_named(const struct devices *devices)
{
    for (size_t n = 0; n < devices->nic_count; n++)
        if (!devices->nics[n].found.ibdev)
            return false;
    return devices->nic_count > 0;
}

/* A device whose ports are not known is used by its own one, or the first. */
static void add_ports(const struct plan_nic *nic, const char *separator, struct buf *out)
{
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    size_t count = inventory_nic_ports(&nic->found, ports);
    if (count == 0)
        buf_printf(out, "%s%s:%u", separator, nic->found.ibdev,
                   nic->found.device.port ? nic->found.device.port : 1);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s:%u", i ? "," : separator, nic->found.ibdev, ports[i]->number);
}

static const char *device_list(struct making *m, const struct devices *devices, const char *prefix)
{
    struct buf out = BUF_INIT;
    buf_add_str(&out, prefix);
    for (size_t n = 0; n < devices->nic_count; n++)
        add_ports(&devices->nics[n], n ? "," : "", &out);
    const char *text = plan_notes_text(m->notes, "%s", out.data ? out.data : "");
    m->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

static bool wants_hca_list(const struct making *m)
{
    if (m->in->hca_list == SPEC_HCA_NEVER || m->profile->data != PROFILE_RDMA)
        return false;
    return m->in->hca_list == SPEC_HCA_ALWAYS || m->profile->hca_list;
}

/* Two ports of one card that the vendor's names put on different rails. NCCL_NET_MERGE_POLICY, of
 * 2.30.7, would do the same, but older versions ignore it, and the version is often not known. */
static void set_merge(struct making *m, const struct devices *devices, struct plan_vars *env)
{
    bool level = m->version >= NCCL_VERSION(2, 24, 0);
    if (!m->profile->merge_rails || m->version < NCCL_VERSION(2, 20, 0))
        return;
    for (size_t n = 1; n < devices->nic_count; n++) {
        const struct plan_nic *a = &devices->nics[n - 1], *b = &devices->nics[n];
        if (a->found.device.pci == PCI_NONE ||
            a->found.device.pci >> 3 != b->found.device.pci >> 3 || a->named_rail < 0 ||
            a->named_rail == b->named_rail)
            continue;
        making_set_own(m, env, level ? "NCCL_NET_MERGE_LEVEL" : "NCCL_IB_MERGE_NICS",
                       level ? "LOC" : "0", "merge-rails", b->found.device.name);
        return;
    }
}

/* HIP heeds its own. NULL: of another vendor, whose variable is not known. */
static const char *visible_name(const struct inventory *inventory)
{
    const char *vendor = inventory->gpu_count > 0 ? inventory->gpus[0].vendor : NULL;
    if (!vendor || strcmp(vendor, "NVIDIA") == 0)
        return "CUDA_VISIBLE_DEVICES";
    return strcmp(vendor, "AMD") == 0 ? "HIP_VISIBLE_DEVICES" : NULL;
}

static bool sees_others(const struct inventory *inventory)
{
    return inventory->probe.visible_gpus > (int32_t)inventory->gpu_count;
}

/* CUDA's number of the GPU: its place among those that the pod sees. */
static size_t cuda_number(const struct inventory *inventory, size_t g)
{
    uint64_t own = inventory->gpus[g].pci;
    json_t *entry = NULL;
    size_t i;
    if (!sees_others(inventory) || own == PCI_NONE)
        return g;
    json_array_foreach(inventory->probe.gpus, i, entry)
    {
        const char *pci = value_text(entry, "pci");
        if (pci && pci_parse(pci) == own)
            return i;
    }
    return g;
}

/* In our order, which is that of addresses, whatever the order of the library is. */
static const char *visible_devices(struct making *m, const struct inventory *inventory)
{
    struct buf out = BUF_INIT;
    bool uuids = inventory->mig || sees_others(inventory);
    bool hip = inventory_has_hip_numbers(inventory);
    for (size_t g = 0; g < inventory->gpu_count; g++)
        uuids &= inventory->gpus[g].uuid != NULL;
    for (size_t g = 0; g < inventory->gpu_count; g++) {
        buf_printf(&out, "%s", g ? "," : "");
        if (hip)
            buf_add_str(&out, inventory_hip_number(inventory, g));
        else if (uuids)
            buf_add_str(&out, inventory->gpus[g].uuid);
        else
            buf_printf(&out, "%zu", cuda_number(inventory, g));
    }
    const char *text = plan_notes_text(m->notes, "%s", out.data ? out.data : "");
    m->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

static void set_tcp(struct making *m, const struct devices *devices, struct plan_vars *env)
{
    const char *names = devices->tcp_interfaces;
    const char *fact = "claimed NICs with addresses, none of RDMA";
    if (!m->tcp_on_nics)
        return;
    making_set_own(m, env, "NCCL_SOCKET_IFNAME", plan_notes_text(m->notes, "=%s", names),
                   "tcp-nics", fact);
    making_set_own(m, env, "OMPI_MCA_btl_tcp_if_include", names, "tcp-nics", fact);
    making_set_own(m, env, "UCX_NET_DEVICES", names, "tcp-nics", fact);
}

/* The rows that name the interface, unless something else has set their variables. */
static void set_own_rows(struct making *m, const struct inventory *inventory, struct plan_vars *env,
                         const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *name = value_text(row, "name"), *value = value_text(row, "value");
        const struct plan_var *common = plan_vars_find(&m->vars->env, name);
        if (!common || (!strstr(value, "${podInterface}") && !strstr(value, "${socketInterface}")))
            continue;
        const char *of_all = expand(m, value);
        m->own = inventory;
        const char *own = expand(m, value);
        m->own = NULL;
        if (strcmp(common->value, of_all) == 0 && strcmp(own, of_all) != 0)
            making_set_own(m, env, name, own, "own-interface",
                           "the interface of the worker's default route; the workers' differ");
    }
}

static void set_own_interface(struct making *m, const struct inventory *inventory,
                              struct plan_vars *env)
{
    if (m->in->pod_interface || !inventory->probe.interface || !m->interfaces_differ)
        return;
    set_own_rows(m, inventory, env, m->in->profiles->common);
    set_own_rows(m, inventory, env, m->profile->variables);
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
static void set_place(struct making *m, struct plan_vars *vars, const struct rank_place *place,
                      const struct place_row *rows, size_t count)
{
    struct rankenv_number numbers[RANKENV_TORCH_COUNT];
    rankenv_torch(place, m->placement->world_size, numbers);
    for (size_t i = 0; i < count; i++) {
        const struct rankenv_number *number = &numbers[rows[i].number];
        making_set_place(m, vars, number->name, plan_notes_text(m->notes, "%u", number->value),
                         rows[i].fact);
    }
}

static void set_worker(struct making *m, uint32_t w)
{
    const struct inventory *inventory = &m->inventories[w];
    const struct devices *devices = &m->devices[w];
    struct plan_vars *env = &m->vars->workers[w].env;
    set_own_interface(m, inventory, env);
    if (all_named(devices) && wants_hca_list(m))
        making_set_own(m, env, "NCCL_IB_HCA", device_list(m, devices, "="), "hca-list",
                       "the claimed NICs");
    if (all_named(devices) && mpi_rdma(m))
        making_set_own(m, env, "UCX_NET_DEVICES", device_list(m, devices, ""), "ucx-rdma",
                       "the claimed NICs");
    set_tcp(m, devices, env);
    making_gid(m, w);
    set_merge(m, devices, env);
    if (!m->placement->per_pod)
        return;
    if (inventory->gpu_count > 0 && visible_name(inventory))
        making_set_own(m, env, visible_name(inventory), visible_devices(m, inventory),
                       "cuda-devices", "the claimed GPUs");
    const struct rank_place place = {
        .rank = m->placement->workers[w].first_rank, .worker = w, .local_size = 1};
    set_place(m, env, &place, one_a_pod, ARRAY_LEN(one_a_pod));
}

/* -ENOMEM. */
static int set_ranks(struct making *m, uint32_t w)
{
    const struct inventory *inventory = &m->inventories[w];
    struct variables_worker *worker = &m->vars->workers[w];
    if (m->placement->per_pod || m->placement->shared || inventory->gpu_count == 0)
        return 0;
    worker->ranks = calloc(inventory->gpu_count, sizeof *worker->ranks);
    if (!worker->ranks)
        return -ENOMEM;
    worker->rank_count = inventory->gpu_count;
    const char *all = visible_devices(m, inventory), *name = visible_name(inventory);
    for (size_t g = 0; g < inventory->gpu_count; g++) {
        struct plan_vars *vars = &worker->ranks[g];
        const struct device *gpu = &inventory->gpus[g];
        bool single = gpu->kind == DEVICE_MIG && gpu->uuid;
        const struct rank_place place = {
            .rank = m->placement->workers[w].first_rank + (uint32_t)g,
            .worker = w,
            .local_rank = single ? 0 : (uint32_t)g, /* it sees its device alone */
            .local_size = (uint32_t)inventory->gpu_count,
        };
        set_place(m, vars, &place, one_a_gpu, ARRAY_LEN(one_a_gpu));
        if (name)
            making_set_own(m, vars, name, single ? gpu->uuid : all, "cuda-devices",
                           "the claimed GPUs");
    }
    return 0;
}

/* ---- the whole ---- */

static bool out_of_memory(const struct variables *variables)
{
    bool failed = variables->env.failed || variables->prepend.failed;
    for (size_t w = 0; w < variables->worker_count; w++) {
        const struct variables_worker *worker = &variables->workers[w];
        failed |= worker->env.failed;
        for (size_t g = 0; g < worker->rank_count; g++)
            failed |= worker->ranks[g].failed;
    }
    return failed;
}

int variables_make(const struct variables_input *input, struct plan_notes *notes,
                   struct variables *ret_variables, struct drarun_error *err)
{
    struct variables variables = {0};
    CLEANUP(variables_donep) struct variables *undo = &variables;
    struct making m = {
        .in = input->plan,
        .inventories = input->inventories,
        .devices = input->devices,
        .profile = input->choice->profile,
        .fact = input->choice->fact,
        .placement = input->placement,
        .version = input->version,
        .notes = notes,
        .vars = &variables,
    };
    int rc = 0;
    variables.workers = calloc(input->plan->worker_count, sizeof *variables.workers);
    if (!variables.workers)
        return error_set(err, ENOMEM, "plan: out of memory");
    variables.worker_count = input->plan->worker_count;
    set_common(&m);
    making_gid_family(&m);
    for (uint32_t w = 0; rc == 0 && w < variables.worker_count; w++) {
        set_worker(&m, w);
        rc = set_ranks(&m, w);
    }
    if (rc < 0 || out_of_memory(&variables))
        return error_set(err, ENOMEM, "plan: out of memory");
    undo = NULL;
    *ret_variables = variables;
    return 0;
}

void variables_done(struct variables *variables)
{
    for (size_t w = 0; w < variables->worker_count; w++) {
        struct variables_worker *worker = &variables->workers[w];
        for (size_t g = 0; g < worker->rank_count; g++)
            free(worker->ranks[g].list);
        free(worker->ranks);
        free(worker->env.list);
    }
    free(variables->workers);
    free(variables->env.list);
    free(variables->prepend.list);
    *variables = (struct variables){0};
}
