/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/allocation.h"
#include "jobs/derive/plan_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

/* ---- claims to devices ---- */

static int missing_device(struct planning *p, uint32_t w, const struct allocation_result *r)
{
    const struct slice_pool *pool =
        p->in->slices ? slices_pool(p->in->slices, r->driver, r->pool) : NULL;
    const char *why = !pool                         ? "no slice of that pool was given"
                      : slice_pool_incomplete(pool) ? "slices of the pool are missing"
                                                    : "the pool's newest generation has none such";
    return plan_notes_refuse(p->notes, WARN_DEVICE_NOT_IN_SLICES, (int32_t)w, "%s/%s/%s: %s",
                             r->driver, r->pool, r->device, why);
}

/* A driver's own word for what its device is stands, also where it is none that we know. */
static bool slice_type(const struct slice_device *slice)
{
    return json_object_get(slice->attributes, "type") != NULL;
}

static void add_unknown(struct planning *p, struct plan_worker *worker,
                        const struct allocation_result *r)
{
    const char *before = worker->unknown ? worker->unknown : "";
    worker->unknown = plan_notes_text(p->notes, "%s%s%s of %s", before, before[0] ? ", " : "",
                                      r->device, r->driver);
}

static int add_allocation(struct planning *p, uint32_t w, const struct allocation *a,
                          struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    worker->gpu_asked |= a->gpu_asked;
    if (!worker->node)
        worker->node = a->node;
    for (size_t i = 0; i < a->count; i++) {
        const struct allocation_result *r = &a->results[i];
        const struct slice_device *slice =
            p->in->slices ? slices_find(p->in->slices, r->driver, r->pool, r->device) : NULL;
        struct device device, told;
        bool known = plan_metadata_device(p, w, r, &told);
        if (!slice && !known && !p->in->slices_unknown)
            return missing_device(p, w, r);
        if (!slice && !known) {
            int rc = plan_add_unread(p, w, r, err);
            if (rc < 0)
                return rc;
            continue;
        }
        int rc = slice ? device_read(slice, &device, err) : 0;
        if (rc < 0)
            return rc;
        if (!slice)
            device = told;
        if (device.kind == DEVICE_OTHER && slice && !slice_type(slice))
            device.kind = plan_role(r);
        if (device.kind == DEVICE_OTHER)
            add_unknown(p, worker, r);
        if (r->pod_name)
            device.pod_name = r->pod_name;
        device.addressed |= json_array_size(r->ips) > 0;
        if (slice && known)
            plan_metadata_fill(p, w, &device, &told);
        if (!worker->node && slice)
            worker->node = slice->node;
        rc = plan_add_device(p, w, &device, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_claims(struct planning *p, uint32_t w, struct drarun_error *err)
{
    size_t i;
    json_t *claim;
    json_array_foreach(p->in->workers[w].claims, i, claim)
    {
        struct allocation a;
        int rc = allocation_read(claim, &a, err);
        if (rc < 0)
            return rc;
        rc = add_allocation(p, w, &a, err);
        allocation_done(&a);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int read_node_devices(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    size_t count = 0;
    const struct slice_device *list =
        p->in->slices && worker->node ? slices_of_node(p->in->slices, worker->node, &count) : NULL;
    worker->node_devices = calloc(count + 1, sizeof *worker->node_devices);
    if (!worker->node_devices)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t i = 0; i < count; i++) {
        int rc = device_read(&list[i], &worker->node_devices[i], err);
        if (rc < 0)
            return rc;
        worker->node_device_count++;
    }
    return 0;
}

/* By PCI address; without one by index; equal ones (MIG) in the claim's order: an insertion sort is
 * stable. */
static bool comes_before(const struct device *a, const struct device *b)
{
    if (a->pci != b->pci)
        return a->pci < b->pci;
    return a->pci == PCI_NONE && a->index < b->index;
}

static void sort_gpus(struct plan_worker *worker)
{
    for (size_t i = 1; i < worker->gpu_count; i++)
        for (size_t j = i;
             j > 0 && comes_before(&worker->gpus[j].device, &worker->gpus[j - 1].device); j--) {
            struct plan_gpu swapped = worker->gpus[j];
            worker->gpus[j] = worker->gpus[j - 1];
            worker->gpus[j - 1] = swapped;
        }
}

static void sort_nics(struct plan_worker *worker)
{
    for (size_t i = 1; i < worker->nic_count; i++)
        for (size_t j = i;
             j > 0 && comes_before(&worker->nics[j].device, &worker->nics[j - 1].device); j--) {
            struct plan_nic swapped = worker->nics[j];
            worker->nics[j] = worker->nics[j - 1];
            worker->nics[j - 1] = swapped;
        }
}

static int check_mig(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    if (!worker->mig)
        return 0;
    warnings_add(&p->notes->warnings, WARN_MIG_NO_P2P, (int32_t)w,
                 "MIG devices: no NVLink or P2P between slices; each rank sees one of them");
    for (size_t i = 0; i < worker->gpu_count; i++)
        for (size_t j = i + 1; j < worker->gpu_count; j++) {
            const struct device *a = &worker->gpus[i].device, *b = &worker->gpus[j].device;
            const char *parent = a->parent ? a->parent : a->uuid;
            const char *other = b->parent ? b->parent : b->uuid;
            if (parent && other && strcmp(parent, other) == 0)
                return plan_notes_refuse(
                    p->notes, WARN_MIG_SAME_PARENT, (int32_t)w,
                    "%s and %s are of one GPU: NCCL refuses both in a communicator "
                    "(\"Duplicate GPU detected\")",
                    a->name, b->name);
        }
    return 0;
}

static bool gpus_asked(const struct planning *p, const struct plan_worker *worker)
{
    if (p->in->no_gpus)
        return false;
    return p->in->ranks == PLAN_RANKS_GPU || worker->gpu_asked || p->in->plugin_gpus > 0;
}

/* "2 of Intel, 1 of another vendor". */
static void add_others(const struct plan_worker *worker, struct buf *out)
{
    const char *vendor;
    json_t *count;
    value_foreach(worker->probe.other_gpus, vendor, count)
        buf_printf(out, "%s%lld of %s", out->len ? ", " : "", (long long)json_integer_value(count),
                   strcmp(vendor, "other") == 0 ? "another vendor" : vendor);
}

static int refuse_no_gpu(struct planning *p, uint32_t w)
{
    uint32_t claimed = p->plan->workers[w].unread_gpus;
    const char *unknown = p->plan->workers[w].unknown;
    if (claimed == 0 && unknown)
        return plan_notes_refuse(
            p->notes, WARN_NO_GPU, (int32_t)w,
            "the claims hold %s, and neither attributes nor the request's name say "
            "that it is a GPU: call the request gpu",
            unknown);
    struct buf others = BUF_INIT;
    add_others(&p->plan->workers[w], &others);
    if (others.len) {
        plan_notes_refuse(p->notes, WARN_NO_GPU, (int32_t)w,
                          "the pod shows accelerators that NCCL and RCCL do not drive: %s",
                          others.data);
        buf_done(&others);
        return 1;
    }
    if (claimed == 0)
        return plan_notes_refuse(p->notes, WARN_NO_GPU, (int32_t)w, "the claims hold no GPU");
    return plan_notes_refuse(
        p->notes, WARN_NO_GPU, (int32_t)w,
        "the pod shows none of the %u GPUs that its claims hold: does the container "
        "list its claim, and does the node have NVIDIA's container toolkit with CDI?",
        claimed);
}

/* A driver may not publish whether its NICs do RDMA; the pod shows it. */
static void mark_rdma(struct plan_worker *worker)
{
    for (size_t n = 0; n < worker->nic_count; n++)
        if (plan_probed_nic(worker, &worker->nics[n].device))
            worker->nics[n].device.rdma = true;
}

/* NCCL and RCCL, whose variables are set, drive GPUs of two vendors. */
static void warn_vendor(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    const char *vendor = worker->gpu_count > 0 ? worker->gpus[0].device.vendor : NULL;
    struct buf others = BUF_INIT;
    if (worker->gpu_count == 0)
        add_others(worker, &others);
    if (others.len)
        warnings_add(&p->notes->warnings, WARN_GPU_VENDOR, (int32_t)w,
                     "accelerators: %s; they are not used, since NCCL and RCCL drive those of "
                     "NVIDIA and AMD",
                     others.data);
    else if (vendor && strcmp(vendor, "AMD") == 0)
        warnings_add(&p->notes->warnings, WARN_GPU_VENDOR, (int32_t)w,
                     "%zu GPUs of AMD: paired with NICs as NCCL would; RCCL's own choice and its "
                     "GPUDirect RDMA are not modelled%s",
                     worker->gpu_count,
                     worker->gpu_count < 2 || !p->plan->workers[w].probe.gpus ||
                             ncclenv_has_hip_numbers(worker)
                         ? ""
                         : "; ROCm's order of them is not known (/sys/class/kfd), and it is taken "
                           "for that of their addresses");
    else if (vendor && strcmp(vendor, "NVIDIA") != 0)
        warnings_add(&p->notes->warnings, WARN_GPU_VENDOR, (int32_t)w,
                     "%zu GPUs of %s: neither NCCL nor RCCL drives them; no variable chooses a "
                     "rank's GPU",
                     worker->gpu_count, vendor);
    p->notes->pool.failed |= others.failed;
    buf_done(&others);
}

int plan_read_worker(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    const struct plan_worker_input *in = &p->in->workers[w];
    worker->pod = in->pod;
    worker->node = in->node;
    worker->score = -1;
    int rc = probe_read(in->probe, &worker->probe, err);
    if (rc == 0)
        rc = plan_read_metadata(p, w, err);
    if (rc == 0)
        rc = read_claims(p, w, err);
    if (rc == 0)
        rc = plan_add_seen(p, w, err);
    if (rc == 0 && !in->claims)
        rc = plan_join_metadata(p, w, err);
    if (rc == 0)
        rc = read_node_devices(p, w, err);
    if (rc < 0)
        return error_prefix(err, "worker %u%s%s", w, in->pod ? " " : "", in->pod ? in->pod : "");
    if (worker->gpu_count == 0 && !worker->probe.present)
        worker->plugin_gpus = p->in->plugin_gpus;
    if (rc == 0 && worker->gpu_count + worker->plugin_gpus == 0 && gpus_asked(p, worker))
        rc = refuse_no_gpu(p, w);
    if (rc != 0)
        return rc;
    sort_gpus(worker);
    sort_nics(worker);
    mark_rdma(worker);
    rc = plan_choose_nics(p, w, err);
    warn_vendor(p, w);
    return rc < 0 ? rc : check_mig(p, w);
}

/* ---- profile ---- */

static bool has_attribute(const char *key, bool (*match)(const char *value, const void *arg),
                          const void *arg, const void *node)
{
    const struct plan_worker *worker = node;
    for (size_t i = 0; i < worker->node_device_count; i++) {
        const struct device *d = &worker->node_devices[i];
        const char *text = value_text(json_object_get(d->slice->attributes, key), "string");
        if (d->kind == DEVICE_NIC && text && text[0] && match(text, arg))
            return true;
    }
    return false;
}

static const struct plan_nic *first_rdma(const struct plan_worker *worker)
{
    for (size_t n = 0; n < worker->nic_count; n++)
        if (worker->nics[n].device.rdma)
            return &worker->nics[n];
    return NULL;
}

static const struct profile *detect(struct planning *p, const struct plan_worker *worker,
                                    char *ret_fact, size_t size)
{
    const struct plan_nic *first = first_rdma(worker);
    struct plan_nic nic = first ? *first : (struct plan_nic){0};
    if (first)
        plan_describe_nic(worker, 0, &nic);
    const json_t *labels = worker->node ? json_object_get(p->in->node_labels, worker->node) : NULL;
    struct profile_facts facts = {
        .labels = labels,
        .has_attribute = has_attribute,
        .node = worker,
        .link_layer = nic.link_layer,
        .ibdev = nic.ibdev,
        .arch = value_text(labels, "kubernetes.io/arch"),
        .product = value_text(json_array_get(worker->probe.gpus, 0), "product"),
        .files = worker->probe.files,
    };
    return profiles_detect(p->in->profiles, &facts, ret_fact, size);
}

int plan_find_profile(struct planning *p, uint32_t w, char *ret_fact, size_t size,
                      const struct profile **ret_profile, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    const char *wanted = p->in->profile;
    const struct profile *profile = NULL;
    if (wanted && strcmp(wanted, "auto") != 0) {
        profile = profiles_find(p->in->profiles, wanted);
        if (!profile)
            return error_kind(err, DRARUN_ERR_SPEC, ENOENT, "no profile \"%.60s\"", wanted);
        snprintf(ret_fact, size, "%s", p->in->profile_fact ? p->in->profile_fact : "asked for");
    } else {
        profile = detect(p, worker, ret_fact, size);
    }
    bool fits = profile && (profile->data == PROFILE_NO_DATA  ? true
                            : profile->data == PROFILE_NETDEV ? worker->nic_count > 0
                                                              : first_rdma(worker) != NULL);
    if (!fits) {
        profile = profiles_find(p->in->profiles, "socket");
        snprintf(ret_fact, size, "no RDMA NIC");
    }
    worker->profile = profile;
    *ret_profile = profile;
    return 0;
}

/* ---- what the NICs are ---- */

/* What TCP can use of NICs without RDMA: NULL where a job has others to move its data, and of those
 * whose address in the pod is not known. */
static const char *tcp_interfaces(struct planning *p, const struct plan_worker *worker)
{
    struct buf names = BUF_INIT;
    const char *text = NULL;
    if (worker->profile->data != PROFILE_NO_DATA || first_rdma(worker))
        return NULL;
    for (size_t n = 0; n < worker->nic_count; n++) {
        const struct device *d = &worker->nics[n].device;
        if (d->pod_name && d->addressed)
            buf_printf(&names, "%s%s", names.len ? "," : "", d->pod_name);
    }
    if (names.len)
        text = plan_notes_text(p->notes, "%s", names.data);
    p->notes->pool.failed |= names.failed;
    buf_done(&names);
    return text;
}

static void drop_unfit_nics(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    struct buf names = BUF_INIT;
    size_t kept = 0;
    if (worker->profile->data == PROFILE_NETDEV)
        return;
    worker->tcp_interfaces = tcp_interfaces(p, worker);
    for (size_t n = 0; n < worker->nic_count; n++) {
        if (worker->nics[n].device.rdma) {
            worker->nics[kept++] = worker->nics[n];
            continue;
        }
        buf_printf(&names, "%s%s", names.len ? "," : "", worker->nics[n].device.name);
    }
    if (kept < worker->nic_count)
        warnings_add(&p->notes->warnings, WARN_NIC_NOT_RDMA, (int32_t)w,
                     worker->tcp_interfaces ? "%s: rdma is not true; used for TCP"
                                            : "%s: rdma is not true; not used",
                     names.data ? names.data : "");
    worker->nic_count = kept;
    buf_done(&names);
}

static int32_t number_in(const char *text)
{
    if (!text)
        return -1;
    text += strcspn(text, "0123456789");
    return *text ? (int32_t)(strtoul(text, NULL, 10) & 0xffff) : -1;
}

/* Its place among the RDMA NICs of the node by PCI address. */
static int32_t position(const struct plan_worker *worker, const struct plan_nic *nic)
{
    int32_t before = 0;
    for (size_t i = 0; i < worker->node_device_count; i++) {
        const struct device *d = &worker->node_devices[i];
        bool carries = worker->profile->data == PROFILE_NETDEV || d->rdma;
        if (d->kind == DEVICE_NIC && carries && comes_before(d, &nic->device))
            before++;
    }
    return before;
}

static void settle_nic(struct planning *p, struct plan_worker *worker, struct plan_nic *nic)
{
    plan_describe_nic(
        worker,
        profile_size(worker->profile, plan_input_instance_type(p->in, worker->node)).nic_gbs, nic);
    nic->named_rail = number_in(nic->device.ifname);
    nic->rail = nic->named_rail >= 0 ? nic->named_rail : position(worker, nic);
}

/* ---- NUMA nodes of the GPUs ---- */

/* Where there are no slices, the claimed NICs are all that is known of the node. */
static int32_t numa_of_own_root(const struct plan_worker *worker, const char *root)
{
    for (size_t n = 0; root && n < worker->nic_count; n++) {
        const struct device *d = &worker->nics[n].device;
        if (d->numa >= 0 && d->root && strcmp(d->root, root) == 0)
            return d->numa;
    }
    return -1;
}

static int32_t numa_of_pci(const struct plan_worker *worker, uint64_t pci)
{
    for (size_t i = 0; pci != PCI_NONE && i < worker->node_device_count; i++)
        if (worker->node_devices[i].kind == DEVICE_NIC && worker->node_devices[i].pci == pci)
            return worker->node_devices[i].numa;
    return -1;
}

static int32_t numa_of_root(const struct plan_worker *worker, const char *root)
{
    for (size_t i = 0; root && i < worker->node_device_count; i++) {
        const struct device *d = &worker->node_devices[i];
        if (d->kind == DEVICE_NIC && d->numa >= 0 && d->root && strcmp(d->root, root) == 0)
            return d->numa;
    }
    return -1;
}

static int32_t numa_in_pod(const struct plan_worker *worker, uint64_t pci)
{
    char text[32];
    if (pci == PCI_NONE)
        return -1;
    pci_format(pci, text, sizeof text);
    const json_t *value = json_object_get(worker->probe.pci_numa, text);
    return json_is_integer(value) ? (int32_t)json_integer_value(value) : -1;
}

/* The NIC that a topology file, or the profile's table, puts beside the GPU. */
static int32_t numa_of_pair(const struct plan_worker *worker, uint64_t pci)
{
    size_t i;
    json_t *pair;
    for (i = 0; i < worker->probe.pair_count; i++)
        if (worker->probe.pairs[i].gpu == pci)
            return numa_of_pci(worker, worker->probe.pairs[i].nic);
    json_array_foreach(worker->profile->numa_pairs, i, pair)
    {
        const char *gpu = json_string_value(json_array_get(pair, 0));
        const char *nic = json_string_value(json_array_get(pair, 1));
        if (gpu && nic && pci_parse(gpu) == pci)
            return numa_of_pci(worker, pci_parse(nic));
    }
    return -1;
}

/* Own attribute, a NIC of its root, the pod's sysfs, the profile's tables. */
static int32_t gpu_numa(const struct plan_worker *worker, const struct device *gpu)
{
    int32_t numa = gpu->numa;
    if (numa < 0)
        numa = numa_of_root(worker, gpu->root);
    if (numa < 0)
        numa = numa_of_own_root(worker, gpu->root);
    if (numa < 0)
        numa = numa_in_pod(worker, gpu->pci);
    if (numa < 0 && gpu->pci != PCI_NONE)
        numa = numa_of_pair(worker, gpu->pci);
    if (numa < 0 && pairs_c2c(worker) && gpu->pci != PCI_NONE)
        numa = (int32_t)(gpu->pci >> 16 >> 4); /* GB200: domain 0008 and 0009 are node 0 */
    if (numa < 0 && worker->probe.numa_cpus[0] && !worker->probe.numa_cpus[1])
        numa = 0; /* there is no other */
    return numa;
}

static void warn_unknown(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    struct buf gpus = BUF_INIT, nics = BUF_INIT;
    for (size_t g = 0; g < worker->gpu_count; g++)
        if (worker->gpus[g].device.numa < 0)
            buf_printf(&gpus, "%s%s", gpus.len ? "," : "", worker->gpus[g].device.name);
    for (size_t n = 0; n < worker->nic_count; n++)
        if (!worker->nics[n].ibdev && worker->profile->data == PROFILE_RDMA)
            buf_printf(&nics, "%s%s", nics.len ? "," : "", worker->nics[n].device.name);
    if (gpus.len)
        warnings_add(&p->notes->warnings, WARN_NUMA_UNKNOWN, (int32_t)w,
                     "%s: NUMA node not known: no CPUs are chosen, and NICs count as far away "
                     "unless they share a root",
                     gpus.data);
    if (nics.len)
        warnings_add(&p->notes->warnings, WARN_IBDEV_UNKNOWN, (int32_t)w,
                     "%s: name of the IB device not known before the pod runs", nics.data);
    p->notes->warnings.failed |= gpus.failed || nics.failed;
    buf_done(&gpus);
    buf_done(&nics);
}

static int refuse_no_nic(struct planning *p, uint32_t w)
{
    const struct plan_worker *worker = &p->plan->workers[w];
    struct buf names = BUF_INIT;
    int rc;
    plan_left_nics(worker, &names);
    if (names.len)
        rc = plan_notes_refuse(p->notes, WARN_NO_RDMA_NIC, (int32_t)w,
                               "network: rdma, but no RDMA NIC can carry data: %s", names.data);
    else
        rc = plan_notes_refuse(
            p->notes, WARN_NO_RDMA_NIC, (int32_t)w,
            "network: rdma, but no RDMA NIC was given; network: any does without");
    buf_done(&names);
    return rc;
}

int plan_settle_devices(struct planning *p, uint32_t w, struct drarun_error *err)
{
    struct plan_worker *worker = &p->plan->workers[w];
    (void)err;
    drop_unfit_nics(p, w);
    if (worker->nic_count == 0) {
        if (p->in->network != SPEC_NETWORK_ANY)
            return refuse_no_nic(p, w);
        warnings_add(&p->notes->warnings, WARN_NO_RDMA_NIC, (int32_t)w,
                     "falling back to NCCL_NET=Socket on %s",
                     worker->tcp_interfaces ? worker->tcp_interfaces : "the pod interface");
    }
    const struct plan_nic *rdma = first_rdma(worker);
    bool asked = p->in->profile && strcmp(p->in->profile, "auto") != 0;
    if (rdma && !asked && p->in->network != SPEC_NETWORK_ANY &&
        strcmp(worker->profile->name, "socket") == 0)
        return plan_notes_refuse(
            p->notes, WARN_NO_RDMA_NIC, (int32_t)w,
            "network: rdma, but no profile knows the network of %s, whose link layer "
            "is neither InfiniBand nor Ethernet: name a profile",
            rdma->device.name);
    for (size_t n = 0; n < worker->nic_count; n++)
        settle_nic(p, worker, &worker->nics[n]);
    for (size_t g = 0; g < worker->gpu_count; g++)
        worker->gpus[g].device.numa = gpu_numa(worker, &worker->gpus[g].device);
    warn_unknown(p, w);
    return 0;
}
