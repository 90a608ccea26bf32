/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/plan_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

/* ---- the class of a pair, by the first fact that tells it ---- */

/* Before the pod is looked at, the profile's file is taken to be there, as its variable is set:
 * with what the vendor writes into it. Nothing is known of a file that the user names. */
static bool profile_file_pair(const struct planning *p, const struct plan_worker *worker,
                              const struct device *gpu, const struct device *nic)
{
    size_t i;
    json_t *pair;
    const char *own = NULL;
    if ((worker->probe.present && worker->probe.files) || ncclenv_user(p, "NCCL_TOPO_FILE", &own))
        return false;
    json_array_foreach(worker->profile->numa_pairs, i, pair)
    {
        const char *gpu_there = json_string_value(json_array_get(pair, 0));
        const char *nic_there = json_string_value(json_array_get(pair, 1));
        if (gpu_there && nic_there && pci_parse(gpu_there) == gpu->pci &&
            pci_parse(nic_there) == nic->pci)
            return gpu->pci != PCI_NONE && nic->pci != PCI_NONE;
    }
    return false;
}

static bool topology_file_pair(const struct planning *p, const struct plan_worker *worker,
                               const struct device *gpu, const struct device *nic)
{
    const char *file = ncclenv_effective(p, "NCCL_TOPO_FILE");
    if (!file || !file[0]) /* "" keeps NCCL from reading any */
        return false;
    for (size_t i = 0; i < worker->probe.pair_count; i++)
        if (worker->probe.pairs[i].gpu == gpu->pci && worker->probe.pairs[i].nic == nic->pci &&
            gpu->pci != PCI_NONE)
            return true;
    return profile_file_pair(p, worker, gpu, nic);
}

/* NULL: the pod's own sysfs says nothing. */
static const char *seen_path(const struct plan_worker *worker, const struct device *gpu,
                             const struct device *nic)
{
    char g[32], n[32];
    if (!worker->probe.paths || gpu->pci == PCI_NONE || nic->pci == PCI_NONE)
        return NULL;
    pci_format(gpu->pci, g, sizeof g);
    pci_format(nic->pci, n, sizeof n);
    return value_text(json_object_get(worker->probe.paths, g), n);
}

/* NODE is PHB in NCCL's terms. Zero: nothing. */
static enum nccl_path seen_class(const struct plan_worker *worker, const struct device *gpu,
                                 const struct device *nic)
{
    const char *text = seen_path(worker, gpu, nic);
    if (!text)
        return 0;
    return strcmp(text, "PIX") == 0   ? NCCL_PATH_PIX
           : strcmp(text, "PXB") == 0 ? NCCL_PATH_PXB
           : strcmp(text, "PHB") == 0 || strcmp(text, "NODE") == 0 || strcmp(text, "P2C") == 0
               ? NCCL_PATH_PHB
           : strcmp(text, "SYS") == 0 ? NCCL_PATH_SYS
                                      : 0;
}

static enum nccl_path class_of(const struct planning *p, const struct plan_worker *worker,
                               const struct device *gpu, const struct plan_nic *nic,
                               enum pair_fact *ret_fact)
{
    const struct device *d = &nic->device;
    enum nccl_path seen = seen_class(worker, gpu, d);
    bool rooted = gpu->root && d->root;
    if (topology_file_pair(p, worker, gpu, d)) {
        *ret_fact = PAIR_BY_FILE;
        return NCCL_PATH_PIX;
    }
    if (seen) {
        *ret_fact = PAIR_BY_SYSFS;
        return seen;
    }
    if (rooted && strcmp(gpu->root, d->root) == 0) {
        *ret_fact = PAIR_BY_ROOT;
        return worker->probe.nested_switch == PROBE_YES ? NCCL_PATH_PXB : NCCL_PATH_PIX;
    }
    if (!rooted && worker->profile->gke_naming && gpu->index >= 0 && nic->named_rail >= 0) {
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
static bool is_node(const struct plan_worker *worker, const struct device *gpu,
                    const struct device *nic, enum pair_fact fact)
{
    const char *text = fact == PAIR_BY_SYSFS ? seen_path(worker, gpu, nic) : NULL;
    return text && strcmp(text, "NODE") == 0;
}

/* ---- what the model needs to know ---- */

/* Products whose boards join the GPUs by NVLink; without a probe nothing better is known. */
static bool product_has_nvlink(const struct plan_worker *worker)
{
    static const char *const words[] = {"SXM", "HBM3", "H200", "B200", "B300", "GB200", "GB300"};
    const char *product = worker->gpus[0].device.product;
    for (size_t i = 0; product && i < ARRAY_LEN(words); i++)
        if (strstr(product, words[i]))
            return true;
    return false;
}

static int number(const struct planning *p, const char *name, int fallback)
{
    const char *value = ncclenv_effective(p, name);
    return value && value[0] >= '0' && value[0] <= '9' ? atoi(value) : fallback;
}

static bool has_nvlink(const struct plan_worker *worker)
{
    if (worker->mig)
        return false;
    if (worker->probe.nvlink != PROBE_UNKNOWN)
        return worker->probe.nvlink == PROBE_YES;
    return product_has_nvlink(worker);
}

static bool gdr_possible(const struct planning *p, const struct plan_worker *worker)
{
    const char *vendor = worker->gpus[0].device.vendor;
    if (vendor && strcmp(vendor, "NVIDIA") != 0)
        return true; /* the facts are of NVIDIA's driver */
    bool dmabuf = worker->probe.dmabuf != PROBE_NO && number(p, "NCCL_DMABUF_ENABLE", 1) != 0;
    return worker->probe.peermem == PROBE_YES || dmabuf ||
           (worker->probe.peermem == PROBE_UNKNOWN && worker->probe.dmabuf == PROBE_UNKNOWN);
}

/* The vendor's plugin sets its own before NCCL reads it, unless the user did. */
static void set_policy(const struct planning *p, const struct profile_size *size,
                       struct nccl_model *m)
{
    const char *policy = ncclenv_effective(p, "NCCL_NETDEVS_POLICY");
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
static uint32_t nvml_index(const struct plan_worker *worker, size_t g)
{
    const struct device *gpu = &worker->gpus[g].device;
    uint32_t before = 0, all = 0;
    for (size_t i = 0; i < worker->node_device_count; i++) {
        const struct device *d = &worker->node_devices[i];
        all += d->kind == DEVICE_GPU && d->pci != PCI_NONE;
        before += d->kind == DEVICE_GPU && d->pci != PCI_NONE && d->pci < gpu->pci;
    }
    bool sees_all = worker->probe.visible_gpus > (int32_t)worker->gpu_count &&
                    worker->probe.visible_gpus == (int32_t)all;
    return sees_all && gpu->pci != PCI_NONE ? before : (uint32_t)g;
}

static void fill_model(const struct planning *p, const struct plan_worker *worker,
                       struct nccl_model *m)
{
    const char *level = ncclenv_effective(p, "NCCL_NET_GDR_LEVEL");
    struct profile_size size =
        profile_size(worker->profile, plan_input_instance_type(p->in, worker->node));
    m->version = p->plan->version;
    m->gpus = (uint32_t)worker->gpu_count;
    m->nics = (uint32_t)worker->nic_count;
    m->c2c = worker->devices.c2c;
    m->nvlink = has_nvlink(worker);
    m->gdr = gdr_possible(p, worker);
    m->pxn = number(p, "NCCL_PXN_DISABLE", 0) != 1;
    m->gdr_c2c = number(p, "NCCL_NET_GDR_C2C", -1);
    m->pxn_c2c = number(p, "NCCL_PXN_C2C", -1);
    m->gdr_level = level ? nccl_level_parse(level, m->version) : -1;
    set_policy(p, &size, m);
    m->inter_socket = worker->probe.inter_socket > 0 ? worker->probe.inter_socket
                      : size.inter_socket > 0        ? size.inter_socket
                                                     : 10;
    for (size_t g = 0; g < worker->gpu_count; g++)
        m->nvml[g] = nvml_index(worker, g);
    for (size_t n = 0; n < worker->nic_count; n++) {
        m->nic_gbs[n] = worker->nics[n].gbs;
        for (size_t g = 0; g < worker->gpu_count; g++) {
            enum pair_fact fact;
            m->classes[g][n] =
                (uint8_t)class_of(p, worker, &worker->gpus[g].device, &worker->nics[n], &fact);
            m->facts[g][n] = (uint8_t)fact;
            m->nodes[g][n] =
                is_node(worker, &worker->gpus[g].device, &worker->nics[n].device, fact);
        }
    }
}

int pairs_run(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    if (worker->gpu_count == 0 || worker->nic_count == 0)
        return 0;
    worker->model = calloc(1, sizeof *worker->model);
    worker->result = calloc(1, sizeof *worker->result);
    if (!worker->model || !worker->result)
        return error_set(err, ENOMEM, "plan: out of memory");
    fill_model(p, worker, worker->model);
    nccl_model_run(worker->model, worker->result);
    return 0;
}

/* ---- what is worth saying ---- */

static const char *c2c_obstacle(const struct planning *p, const struct nccl_model *m)
{
    const char *level = ncclenv_effective(p, "NCCL_NET_GDR_LEVEL");
    if (!nccl_model_c2c(m))
        return "NCCL_NET_GDR_C2C=0";
    return level ? plan_notes_text(p->notes, "level %s", level) : "level PXB (default)";
}

static void warn_use(struct planning *p, uint32_t w, size_t g, const struct nccl_use *use)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    const char *gpu = worker->gpus[g].device.name, *nic = worker->nics[use->nic].label;
    struct warnings *out = &p->notes->warnings;
    bool c2c_path = use->path == NCCL_PATH_P2C ||
                    (use->path == NCCL_PATH_PHB && worker->model->c2c); /* its name in 2.26 */
    bool direct_phb = worker->model->classes[g][use->nic] == NCCL_PATH_PHB && !worker->model->c2c;
    if (use->path == NCCL_PATH_SYS && worker->gpus[g].device.numa < 0)
        return; /* taken for the worst, which NUMA_UNKNOWN says */
    if (use->path == NCCL_PATH_SYS)
        warnings_add(out, WARN_MISALIGNED_SYS, (int32_t)w,
                     "%s -> %s crosses NUMA nodes; GPUDirect RDMA %s", gpu, nic,
                     use->gdr ? "on" : "off");
    else if (use->path == NCCL_PATH_PHB && direct_phb && worker->model->nodes[g][use->nic])
        warnings_add(out, WARN_MISALIGNED_NODE, (int32_t)w,
                     "%s -> %s goes through two host bridges of one NUMA node (PHB to NCCL); "
                     "GPUDirect RDMA %s",
                     gpu, nic, use->gdr ? "on" : "off");
    else if (use->path == NCCL_PATH_PHB && direct_phb)
        warnings_add(out, WARN_MISALIGNED_PHB, (int32_t)w,
                     "%s -> %s goes through the host bridge; GPUDirect RDMA %s", gpu, nic,
                     use->gdr ? "on" : "off");
    else if (use->path == NCCL_PATH_PXN)
        warnings_add(out, WARN_NIC_VIA_PXN, (int32_t)w, "%s reaches %s through a peer GPU (NVLink)",
                     gpu, nic);
    if (c2c_path && !use->gdr && worker->model->gdr)
        warnings_add(out, WARN_C2C_GDR_OFF, (int32_t)w,
                     "%s -> %s: %s keeps GPUDirect RDMA off on a chip-to-chip path", gpu, nic,
                     c2c_obstacle(p, worker->model));
}

static void warn_unused(struct planning *p, uint32_t w, const bool *used)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    struct buf names = BUF_INIT;
    for (size_t n = 0; n < worker->nic_count; n++)
        if (!used[n])
            buf_printf(&names, "%s%s", names.len ? "," : "", worker->nics[n].label);
    if (names.len)
        warnings_add(&p->notes->warnings, WARN_NIC_UNUSED_P2P, (int32_t)w, "%s", names.data);
    buf_done(&names);
}

static void warn_pairs(struct planning *p, uint32_t w)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    bool used[NCCL_NICS_MAX] = {false};
    for (size_t g = 0; g < worker->gpu_count; g++)
        for (size_t i = 0; i < worker->result->count[g]; i++) {
            warn_use(p, w, g, &worker->result->use[g][i]);
            used[worker->result->use[g][i].nic] = true;
        }
    warn_unused(p, w, used);
    if (!worker->model->gdr)
        warnings_add(&p->notes->warnings, WARN_GDR_UNAVAILABLE, (int32_t)w,
                     "neither nvidia-peermem nor dma-buf seen in the pod");
    if (worker->nic_count < worker->gpu_count)
        warnings_add(&p->notes->warnings, WARN_FEWER_NICS_THAN_GPUS, (int32_t)w,
                     "%zu NICs for %zu GPUs", worker->nic_count, worker->gpu_count);
}

static void warn_speeds(struct planning *p, uint32_t w)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    double least = 0, most = 0;
    for (size_t n = 0; n < worker->nic_count; n++) {
        double gbs = worker->nics[n].gbs;
        if (!worker->nics[n].speed_known)
            return;
        least = n == 0 || gbs < least ? gbs : least;
        most = n == 0 || gbs > most ? gbs : most;
    }
    if (most > least)
        warnings_add(&p->notes->warnings, WARN_MIXED_NIC_SPEED, (int32_t)w,
                     "NICs of %.0f and %.0f Gbit/s", least * 8, most * 8);
}

static void warn_extra(struct planning *p, uint32_t w)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    struct buf names = BUF_INIT;
    for (size_t v = 0; v < worker->probe.visible.count; v++) {
        bool claimed = false;
        for (size_t n = 0; n < worker->nic_count; n++)
            claimed |= worker->nics[n].ibdev &&
                       strcmp(worker->nics[n].ibdev, worker->probe.visible.items[v]) == 0;
        for (size_t n = 0; n < worker->left_count; n++) /* NIC_LEFT_OUT names it */
            claimed |= strcmp(worker->left[n].ibdev, worker->probe.visible.items[v]) == 0;
        if (!claimed)
            buf_printf(&names, "%s%s", names.len ? "," : "", worker->probe.visible.items[v]);
    }
    if (names.len)
        warnings_add(&p->notes->warnings, WARN_EXTRA_IB_DEVICES_VISIBLE, (int32_t)w, "%s",
                     names.data);
    buf_done(&names);
}

void pairs_warn(struct planning *p, uint32_t w)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    size_t node_gpus = 0;
    for (size_t i = 0; i < worker->node_device_count; i++)
        node_gpus += worker->node_devices[i].kind == DEVICE_GPU;
    if (worker->result)
        warn_pairs(p, w);
    if (worker->nic_count > 0) {
        warn_speeds(p, w);
        warn_extra(p, w);
    }
    if (worker->profile->whole_node && worker->gpu_count < (node_gpus ? node_gpus : 8))
        warnings_add(&p->notes->warnings, WARN_PROFILE_NEEDS_WHOLE_NODE, (int32_t)w,
                     "%s works with all GPUs of a node; the worker has %zu of %zu",
                     worker->profile->name, worker->gpu_count, node_gpus ? node_gpus : 8);
}
