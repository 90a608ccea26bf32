/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/pairing/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/pairing/score.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

DEFINE_CLEANUP(struct pairs, pairs_done)

static const char *effective(const struct pairs_input *p, const char *name)
{
    return variables_effective(p->plan, p->variables, name);
}

/* ---- the class of a pair, by the first fact that tells it ---- */

static bool is_profiles_file(const struct pairs_input *p, const char *file)
{
    const char *own =
        value_text(value_find(p->profile->variables, "name", "NCCL_TOPO_FILE"), "value");
    return own && strcmp(own, file) == 0;
}

/* An inspection does not read the file. In the profile's own is what its vendor writes into it; it
 * is taken to be there until the pod is looked at. Nothing is known of another that the user names.
 */
static bool profile_file_pair(const struct pairs_input *p, const char *file,
                              const struct device *gpu, const struct device *nic)
{
    size_t i;
    json_t *pair;
    const struct probe *probe = &p->inventory->probe;
    if (probe->pairs || !is_profiles_file(p, file) || probe_file(probe, file) == PROBE_NO)
        return false;
    json_array_foreach(p->profile->numa_pairs, i, pair)
    {
        const char *gpu_there = json_string_value(json_array_get(pair, 0));
        const char *nic_there = json_string_value(json_array_get(pair, 1));
        if (gpu_there && nic_there && pci_parse(gpu_there) == gpu->pci &&
            pci_parse(nic_there) == nic->pci)
            return gpu->pci != PCI_NONE && nic->pci != PCI_NONE;
    }
    return false;
}

static bool topology_file_pair(const struct pairs_input *p, const struct device *gpu,
                               const struct device *nic)
{
    const struct probe *probe = &p->inventory->probe;
    const char *file = effective(p, "NCCL_TOPO_FILE");
    if (!file || !file[0]) /* "" keeps NCCL from reading any */
        return false;
    for (size_t i = 0; i < probe->pair_count; i++)
        if (probe->pairs[i].gpu == gpu->pci && probe->pairs[i].nic == nic->pci &&
            gpu->pci != PCI_NONE)
            return true;
    return profile_file_pair(p, file, gpu, nic);
}

/* NULL: the pod's own sysfs says nothing. */
static const char *seen_path(const struct pairs_input *p, const struct device *gpu,
                             const struct device *nic)
{
    char g[32], n[32];
    if (!p->inventory->probe.paths || gpu->pci == PCI_NONE || nic->pci == PCI_NONE)
        return NULL;
    pci_format(gpu->pci, g, sizeof g);
    pci_format(nic->pci, n, sizeof n);
    return value_text(json_object_get(p->inventory->probe.paths, g), n);
}

/* NODE is PHB in NCCL's terms. Zero: nothing. */
static enum nccl_path seen_class(const struct pairs_input *p, const struct device *gpu,
                                 const struct device *nic)
{
    const char *text = seen_path(p, gpu, nic);
    if (!text)
        return 0;
    return strcmp(text, "PIX") == 0   ? NCCL_PATH_PIX
           : strcmp(text, "PXB") == 0 ? NCCL_PATH_PXB
           : strcmp(text, "PHB") == 0 || strcmp(text, "NODE") == 0 || strcmp(text, "P2C") == 0
               ? NCCL_PATH_PHB
           : strcmp(text, "SYS") == 0 ? NCCL_PATH_SYS
                                      : 0;
}

static enum nccl_path class_of(const struct pairs_input *p, const struct device *gpu,
                               const struct plan_nic *nic, enum pair_fact *ret_fact)
{
    const struct device *d = &nic->found.device;
    enum nccl_path seen = seen_class(p, gpu, d);
    bool rooted = gpu->root && d->root;
    if (topology_file_pair(p, gpu, d)) {
        *ret_fact = PAIR_BY_FILE;
        return NCCL_PATH_PIX;
    }
    if (seen) {
        *ret_fact = PAIR_BY_SYSFS;
        return seen;
    }
    if (rooted && strcmp(gpu->root, d->root) == 0) {
        *ret_fact = PAIR_BY_ROOT;
        return p->inventory->probe.nested_switch == PROBE_YES ? NCCL_PATH_PXB : NCCL_PATH_PIX;
    }
    if (!rooted && p->profile->gke_naming && gpu->index >= 0 && nic->named_rail >= 0) {
        *ret_fact = PAIR_BY_NAMES;
        if (gpu->index / 2 == nic->named_rail / 2)
            return NCCL_PATH_PIX;
        return gpu->index / 4 == nic->named_rail / 4 ? NCCL_PATH_PHB : NCCL_PATH_SYS;
    }
    *ret_fact = PAIR_BY_NUMA;
    return gpu->numa >= 0 && gpu->numa == d->numa ? NCCL_PATH_PHB : NCCL_PATH_SYS;
}

/* Whether a PHB is over two host bridges of one NUMA node, as far as sysfs tells. Of attributes
 * nothing but the node may be known, and the bridge may be one. */
static bool is_node(const struct pairs_input *p, const struct device *gpu, const struct device *nic,
                    enum pair_fact fact)
{
    const char *text = fact == PAIR_BY_SYSFS ? seen_path(p, gpu, nic) : NULL;
    return text && strcmp(text, "NODE") == 0;
}

/* ---- what the model needs to know ---- */

/* Products whose boards join the GPUs by NVLink; without a probe nothing better is known. */
static bool product_has_nvlink(const struct pairs_input *p)
{
    static const char *const words[] = {"SXM", "HBM3", "H200", "B200", "B300", "GB200", "GB300"};
    const char *product = p->devices->gpus[0].product;
    for (size_t i = 0; product && i < ARRAY_LEN(words); i++)
        if (strstr(product, words[i]))
            return true;
    return false;
}

static int number(const struct pairs_input *p, const char *name, int fallback)
{
    const char *value = effective(p, name);
    return value && value[0] >= '0' && value[0] <= '9' ? atoi(value) : fallback;
}

static bool has_nvlink(const struct pairs_input *p)
{
    if (p->inventory->mig)
        return false;
    if (p->inventory->probe.nvlink != PROBE_UNKNOWN)
        return p->inventory->probe.nvlink == PROBE_YES;
    return product_has_nvlink(p);
}

static bool gdr_possible(const struct pairs_input *p)
{
    const struct probe *probe = &p->inventory->probe;
    const char *vendor = p->devices->gpus[0].vendor;
    if (vendor && strcmp(vendor, "NVIDIA") != 0)
        return true; /* the facts are of NVIDIA's driver */
    bool dmabuf = probe->dmabuf != PROBE_NO && number(p, "NCCL_DMABUF_ENABLE", 1) != 0;
    return probe->peermem == PROBE_YES || dmabuf ||
           (probe->peermem == PROBE_UNKNOWN && probe->dmabuf == PROBE_UNKNOWN);
}

/* The vendor's plugin sets its own before NCCL reads it, unless the user did. */
static void set_policy(const struct pairs_input *p, const struct profile_size *size,
                       struct nccl_model *m)
{
    const char *policy = effective(p, "NCCL_NETDEVS_POLICY");
    if (!policy)
        policy = size->net_devs_policy;
    if (!policy || m->version < NCCL_VERSION(2, 28, 0))
        return;
    if (strcasecmp(policy, "ALL") == 0)
        m->policy = NCCL_DEVS_ALL;
    if (strncasecmp(policy, "MAX:", 4) == 0) {
        m->policy = NCCL_DEVS_MAX;
        m->policy_max = (uint32_t)strtoul(policy + 4, NULL, 10);
    }
}

/* NVML counts the GPUs that the container can open: where it sees all of its node's, the place
 * among those. */
static uint32_t nvml_index(const struct pairs_input *p, size_t g)
{
    const struct device *gpu = &p->devices->gpus[g];
    uint32_t before = 0, all = 0;
    for (size_t i = 0; i < p->inventory->node_device_count; i++) {
        const struct device *d = &p->inventory->node_devices[i];
        all += d->kind == DEVICE_GPU && d->pci != PCI_NONE;
        before += d->kind == DEVICE_GPU && d->pci != PCI_NONE && d->pci < gpu->pci;
    }
    bool sees_all = p->inventory->probe.visible_gpus > (int32_t)p->devices->gpu_count &&
                    p->inventory->probe.visible_gpus == (int32_t)all;
    return sees_all && gpu->pci != PCI_NONE ? before : (uint32_t)g;
}

static void fill_model(const struct pairs_input *p, struct nccl_model *m)
{
    const struct devices *devices = p->devices;
    const char *type = plan_input_instance_type(p->plan, p->inventory->node);
    double seen = p->inventory->probe.inter_socket;
    const char *level = effective(p, "NCCL_NET_GDR_LEVEL");
    struct profile_size size = profile_size(p->profile, type);
    m->version = p->version;
    m->gpus = (uint32_t)devices->gpu_count;
    m->nics = (uint32_t)devices->nic_count;
    m->c2c = devices->c2c;
    m->nvlink = has_nvlink(p);
    m->gdr = gdr_possible(p);
    m->pxn = number(p, "NCCL_PXN_DISABLE", 0) != 1;
    m->gdr_c2c = number(p, "NCCL_NET_GDR_C2C", -1);
    m->pxn_c2c = number(p, "NCCL_PXN_C2C", -1);
    m->gdr_level = level ? nccl_level_parse(level, m->version) : -1;
    set_policy(p, &size, m);
    m->inter_socket = seen > 0 ? seen : size.inter_socket > 0 ? size.inter_socket : 10;
    for (size_t g = 0; g < devices->gpu_count; g++)
        m->nvml[g] = nvml_index(p, g);
    for (size_t n = 0; n < devices->nic_count; n++) {
        m->nic_gbs[n] = devices->nics[n].gbs;
        for (size_t g = 0; g < devices->gpu_count; g++) {
            enum pair_fact fact;
            m->classes[g][n] = (uint8_t)class_of(p, &devices->gpus[g], &devices->nics[n], &fact);
            m->facts[g][n] = (uint8_t)fact;
            m->nodes[g][n] = is_node(p, &devices->gpus[g], &devices->nics[n].found.device, fact);
        }
    }
}

/* ---- what is worth saying ---- */

static const char *c2c_obstacle(const struct pairs_input *p, const struct nccl_model *m,
                                struct plan_notes *notes)
{
    const char *level = effective(p, "NCCL_NET_GDR_LEVEL");
    if (!nccl_model_c2c(m))
        return "NCCL_NET_GDR_C2C=0";
    return level ? plan_notes_text(notes, "level %s", level) : "level PXB (default)";
}

static void warn_use(const struct pairs_input *p, const struct nccl_model *m, size_t g,
                     const struct nccl_use *use, struct plan_notes *notes)
{
    const char *gpu = p->devices->gpus[g].name, *nic = p->devices->nics[use->nic].found.label;
    struct warnings *out = &notes->warnings;
    int32_t w = (int32_t)p->worker;
    bool c2c_path =
        use->path == NCCL_PATH_P2C || (use->path == NCCL_PATH_PHB && m->c2c); /* its name in 2.26 */
    bool direct_phb = m->classes[g][use->nic] == NCCL_PATH_PHB && !m->c2c;
    if (use->path == NCCL_PATH_SYS && p->devices->gpus[g].numa < 0)
        return; /* taken for the worst, which NUMA_UNKNOWN says */
    if (use->path == NCCL_PATH_SYS)
        warnings_add(out, WARN_MISALIGNED_SYS, w, "%s -> %s crosses NUMA nodes; GPUDirect RDMA %s",
                     gpu, nic, use->gdr ? "on" : "off");
    else if (use->path == NCCL_PATH_PHB && direct_phb && m->nodes[g][use->nic])
        warnings_add(out, WARN_MISALIGNED_NODE, w,
                     "%s -> %s goes through two host bridges of one NUMA node (PHB to NCCL); "
                     "GPUDirect RDMA %s",
                     gpu, nic, use->gdr ? "on" : "off");
    else if (use->path == NCCL_PATH_PHB && direct_phb)
        warnings_add(out, WARN_MISALIGNED_PHB, w,
                     "%s -> %s goes through the host bridge; GPUDirect RDMA %s", gpu, nic,
                     use->gdr ? "on" : "off");
    else if (use->path == NCCL_PATH_PXN)
        warnings_add(out, WARN_NIC_VIA_PXN, w, "%s reaches %s through a peer GPU (NVLink)", gpu,
                     nic);
    if (c2c_path && !use->gdr && m->gdr)
        warnings_add(out, WARN_C2C_GDR_OFF, w,
                     "%s -> %s: %s keeps GPUDirect RDMA off on a chip-to-chip path", gpu, nic,
                     c2c_obstacle(p, m, notes));
}

static void warn_unused(const struct pairs_input *p, const bool *used, struct plan_notes *notes)
{
    struct buf names = BUF_INIT;
    for (size_t n = 0; n < p->devices->nic_count; n++)
        if (!used[n])
            buf_printf(&names, "%s%s", names.len ? "," : "", p->devices->nics[n].found.label);
    if (names.len)
        warnings_add(&notes->warnings, WARN_NIC_UNUSED_P2P, (int32_t)p->worker, "%s", names.data);
    buf_done(&names);
}

static void warn_pairs(const struct pairs_input *p, const struct pairs *pairs,
                       struct plan_notes *notes)
{
    bool used[NCCL_NICS_MAX] = {false};
    for (size_t g = 0; g < p->devices->gpu_count; g++)
        for (size_t i = 0; i < pairs->result->count[g]; i++) {
            warn_use(p, pairs->model, g, &pairs->result->use[g][i], notes);
            used[pairs->result->use[g][i].nic] = true;
        }
    warn_unused(p, used, notes);
    if (!pairs->model->gdr)
        warnings_add(&notes->warnings, WARN_GDR_UNAVAILABLE, (int32_t)p->worker,
                     "neither nvidia-peermem nor dma-buf seen in the pod");
    if (p->devices->nic_count < p->devices->gpu_count)
        warnings_add(&notes->warnings, WARN_FEWER_NICS_THAN_GPUS, (int32_t)p->worker,
                     "%zu NICs for %zu GPUs", p->devices->nic_count, p->devices->gpu_count);
}

static void warn_speeds(const struct pairs_input *p, struct plan_notes *notes)
{
    double least = 0, most = 0;
    for (size_t n = 0; n < p->devices->nic_count; n++) {
        double gbs = p->devices->nics[n].gbs;
        if (p->devices->nics[n].found.mbps == 0)
            return;
        least = n == 0 || gbs < least ? gbs : least;
        most = n == 0 || gbs > most ? gbs : most;
    }
    if (most > least)
        warnings_add(&notes->warnings, WARN_MIXED_NIC_SPEED, (int32_t)p->worker,
                     "NICs of %.0f and %.0f Gbit/s", least * 8, most * 8);
}

static void warn_extra(const struct pairs_input *p, struct plan_notes *notes)
{
    const struct inventory *inventory = p->inventory;
    struct buf names = BUF_INIT;
    for (size_t v = 0; v < inventory->probe.visible.count; v++) {
        bool claimed = false;
        for (size_t n = 0; n < p->devices->nic_count; n++)
            claimed |=
                p->devices->nics[n].found.ibdev &&
                strcmp(p->devices->nics[n].found.ibdev, inventory->probe.visible.items[v]) == 0;
        for (size_t n = 0; n < inventory->left_count; n++) /* NIC_LEFT_OUT names it */
            claimed |= strcmp(inventory->left[n].ibdev, inventory->probe.visible.items[v]) == 0;
        if (!claimed)
            buf_printf(&names, "%s%s", names.len ? "," : "", inventory->probe.visible.items[v]);
    }
    if (names.len)
        warnings_add(&notes->warnings, WARN_EXTRA_IB_DEVICES_VISIBLE, (int32_t)p->worker, "%s",
                     names.data);
    buf_done(&names);
}

static void warn_whole_node(const struct pairs_input *p, struct plan_notes *notes)
{
    size_t node_gpus = 0, gpus = p->devices->gpu_count;
    for (size_t i = 0; i < p->inventory->node_device_count; i++)
        node_gpus += p->inventory->node_devices[i].kind == DEVICE_GPU;
    if (p->profile->whole_node && gpus < (node_gpus ? node_gpus : 8))
        warnings_add(&notes->warnings, WARN_PROFILE_NEEDS_WHOLE_NODE, (int32_t)p->worker,
                     "%s works with all GPUs of a node; the worker has %zu of %zu",
                     p->profile->name, gpus, node_gpus ? node_gpus : 8);
}

static void warn_of_all(const struct pairs_input *p, const struct pairs *pairs,
                        struct plan_notes *notes)
{
    if (pairs->result)
        warn_pairs(p, pairs, notes);
    if (p->devices->nic_count > 0) {
        warn_speeds(p, notes);
        warn_extra(p, notes);
    }
    warn_whole_node(p, notes);
}

/* ---- the whole ---- */

int pairs_make(const struct pairs_input *input, struct plan_notes *notes, struct pairs *ret_pairs,
               struct drarun_error *err)
{
    struct pairs pairs = {.score = -1};
    CLEANUP(pairs_donep) struct pairs *undo = &pairs;
    const char *arch = plan_input_label(input->plan, input->inventory->node, "kubernetes.io/arch");
    bool arm = arch ? strcmp(arch, "arm64") == 0 : input->profile->c2c;
    if (input->devices->gpu_count > 0 && input->devices->nic_count > 0) {
        pairs.model = calloc(1, sizeof *pairs.model);
        pairs.result = calloc(1, sizeof *pairs.result);
        if (!pairs.model || !pairs.result)
            return error_set(err, ENOMEM, "plan: out of memory");
        fill_model(input, pairs.model);
        nccl_model_run(pairs.model, pairs.result);
        pairs.score = score_of(input->devices, pairs.model, pairs.result, arm);
    }
    warn_of_all(input, &pairs, notes);
    undo = NULL;
    *ret_pairs = pairs;
    return 0;
}

void pairs_done(struct pairs *pairs)
{
    free(pairs->model);
    free(pairs->result);
    *pairs = (struct pairs){0};
}
