/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/devices/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

DEFINE_CLEANUP(struct devices, devices_done)

struct settling {
    const struct plan_input *in;
    uint32_t worker;
    const struct inventory *inv;
    const struct profile *profile;
    struct plan_notes *notes;
    struct devices *out; /* being filled */
};

/* ---- what the NICs are ---- */

/* What TCP can use of NICs without RDMA: NULL where a job has others to move its data, and of those
 * whose address in the pod is not known. */
static const char *tcp_interfaces(struct settling *s)
{
    struct buf names = BUF_INIT;
    const char *text = NULL;
    if (s->profile->data != PROFILE_NO_DATA || inventory_first_rdma(s->inv))
        return NULL;
    for (size_t n = 0; n < s->inv->nic_count; n++) {
        const struct device *d = &s->inv->nics[n].device;
        if (d->pod_name && d->addressed)
            buf_printf(&names, "%s%s", names.len ? "," : "", d->pod_name);
    }
    if (names.len)
        text = plan_notes_text(s->notes, "%s", names.data);
    s->notes->pool.failed |= names.failed;
    buf_done(&names);
    return text;
}

static int32_t number_in(const char *text)
{
    if (!text)
        return -1;
    text += strcspn(text, "0123456789");
    return *text ? (int32_t)(strtoul(text, NULL, 10) & 0xffff) : -1;
}

/* "gpu3rdma0" and "rdma3" are vendors' names and have the fabric's number in them; the kernel's,
 * "enp26s0np0", have the slot's. */
static bool names_rail(const char *ifname)
{
    const char *rdma = ifname ? strstr(ifname, "rdma") : NULL;
    return rdma && (rdma == ifname || strncmp(ifname, "gpu", 3) == 0) && number_in(ifname) >= 0;
}

/* Its place among the RDMA NICs of the node by PCI address. */
static int32_t position(const struct settling *s, const struct device *device)
{
    int32_t before = 0;
    for (size_t i = 0; i < s->inv->node_device_count; i++) {
        const struct device *d = &s->inv->node_devices[i];
        bool carries = s->profile->data == PROFILE_NETDEV || d->rdma;
        if (d->kind == DEVICE_NIC && carries && inventory_comes_before(d, device))
            before++;
    }
    return before;
}

/* nominal_gbs: where the speed is not known; 0: nothing better. */
static struct plan_nic nic_of(const struct settling *s, const struct inventory_nic *nic,
                              double nominal_gbs)
{
    const struct device *device = &nic->device;
    struct plan_nic settled = {.found = *nic, .named_rail = number_in(device->ifname)};
    settled.rail = device->has_rail && !names_rail(device->ifname) ? (int32_t)device->rail
                   : settled.named_rail >= 0                       ? settled.named_rail
                                                                   : position(s, device);
    settled.gbs = nic->mbps > 0 ? nic->mbps / 8000.0 : nominal_gbs > 0 ? nominal_gbs : 50.0;
    return settled;
}

/* Those that the profile can carry data on. */
static void take_nics(struct settling *s)
{
    const char *type = plan_input_instance_type(s->in, s->inv->node);
    double nominal_gbs = profile_size(s->profile, type).nic_gbs;
    struct buf unfit = BUF_INIT;
    for (size_t n = 0; n < s->inv->nic_count; n++) {
        const struct inventory_nic *nic = &s->inv->nics[n];
        if (s->profile->data == PROFILE_NETDEV || nic->device.rdma)
            s->out->nics[s->out->nic_count++] = nic_of(s, nic, nominal_gbs);
        else
            buf_printf(&unfit, "%s%s", unfit.len ? "," : "", nic->device.name);
    }
    if (s->out->nic_count < s->inv->nic_count)
        warnings_add(&s->notes->warnings, WARN_NIC_NOT_RDMA, (int32_t)s->worker,
                     s->out->tcp_interfaces ? "%s: rdma is not true; used for TCP"
                                            : "%s: rdma is not true; not used",
                     unfit.data ? unfit.data : "");
    buf_done(&unfit);
}

/* ---- NUMA nodes of the GPUs ---- */

/* Where there are no slices, the claimed NICs are all that is known of the node. */
static int32_t numa_of_own_root(const struct devices *devices, const char *root)
{
    for (size_t n = 0; root && n < devices->nic_count; n++) {
        const struct device *d = &devices->nics[n].found.device;
        if (d->numa >= 0 && d->root && strcmp(d->root, root) == 0)
            return d->numa;
    }
    return -1;
}

static int32_t numa_of_pci(const struct inventory *inv, uint64_t pci)
{
    for (size_t i = 0; pci != PCI_NONE && i < inv->node_device_count; i++)
        if (inv->node_devices[i].kind == DEVICE_NIC && inv->node_devices[i].pci == pci)
            return inv->node_devices[i].numa;
    return -1;
}

static int32_t numa_of_root(const struct inventory *inv, const char *root)
{
    for (size_t i = 0; root && i < inv->node_device_count; i++) {
        const struct device *d = &inv->node_devices[i];
        if (d->kind == DEVICE_NIC && d->numa >= 0 && d->root && strcmp(d->root, root) == 0)
            return d->numa;
    }
    return -1;
}

static int32_t numa_in_pod(const struct inventory *inv, uint64_t pci)
{
    char text[32];
    if (pci == PCI_NONE)
        return -1;
    pci_format(pci, text, sizeof text);
    const json_t *value = json_object_get(inv->probe.pci_numa, text);
    return json_is_integer(value) ? (int32_t)json_integer_value(value) : -1;
}

/* The NIC that a topology file, or the profile's table, puts beside the GPU. */
static int32_t numa_of_pair(const struct settling *s, uint64_t pci)
{
    const struct probe *probe = &s->inv->probe;
    size_t i;
    json_t *pair;
    for (i = 0; i < probe->pair_count; i++)
        if (probe->pairs[i].gpu == pci)
            return numa_of_pci(s->inv, probe->pairs[i].nic);
    json_array_foreach(s->profile->numa_pairs, i, pair)
    {
        const char *gpu = json_string_value(json_array_get(pair, 0));
        const char *nic = json_string_value(json_array_get(pair, 1));
        if (gpu && nic && pci_parse(gpu) == pci)
            return numa_of_pci(s->inv, pci_parse(nic));
    }
    return -1;
}

/* Own attribute, a NIC of its root, the pod's sysfs, the profile's tables. */
static int32_t gpu_numa(const struct settling *s, const struct device *gpu)
{
    const struct probe *probe = &s->inv->probe;
    int32_t numa = gpu->numa;
    if (numa < 0)
        numa = numa_of_root(s->inv, gpu->root);
    if (numa < 0)
        numa = numa_of_own_root(s->out, gpu->root);
    if (numa < 0)
        numa = numa_in_pod(s->inv, gpu->pci);
    if (numa < 0 && gpu->pci != PCI_NONE)
        numa = numa_of_pair(s, gpu->pci);
    if (numa < 0 && s->out->c2c && gpu->pci != PCI_NONE)
        numa = (int32_t)(gpu->pci >> 16 >> 4); /* GB200: domain 0008 and 0009 are node 0 */
    if (numa < 0 && probe->numa_cpus[0] && !probe->numa_cpus[1])
        numa = 0; /* there is no other */
    return numa;
}

static void take_gpus(struct settling *s)
{
    for (size_t g = 0; g < s->inv->gpu_count; g++) {
        s->out->gpus[g] = s->inv->gpus[g];
        s->out->gpus[g].numa = gpu_numa(s, &s->inv->gpus[g]);
    }
    s->out->gpu_count = s->inv->gpu_count;
}

static bool is_c2c(const struct inventory *inv, const struct profile *profile)
{
    const char *product = inv->gpu_count > 0 ? inv->gpus[0].product : NULL;
    return profile->c2c || (product && (strstr(product, "GB200") || strstr(product, "GB300") ||
                                        strstr(product, "GH200")));
}

/* ---- what is worth saying ---- */

static void warn_unknown(struct settling *s)
{
    const struct devices *devices = s->out;
    struct buf gpus = BUF_INIT, nics = BUF_INIT;
    for (size_t g = 0; g < devices->gpu_count; g++)
        if (devices->gpus[g].numa < 0)
            buf_printf(&gpus, "%s%s", gpus.len ? "," : "", devices->gpus[g].name);
    for (size_t n = 0; n < devices->nic_count; n++)
        if (!devices->nics[n].found.ibdev && s->profile->data == PROFILE_RDMA)
            buf_printf(&nics, "%s%s", nics.len ? "," : "", devices->nics[n].found.device.name);
    if (gpus.len)
        warnings_add(&s->notes->warnings, WARN_NUMA_UNKNOWN, (int32_t)s->worker,
                     "%s: NUMA node not known: no CPUs are chosen, and NICs count as far away "
                     "unless they share a root",
                     gpus.data);
    if (nics.len)
        warnings_add(&s->notes->warnings, WARN_IBDEV_UNKNOWN, (int32_t)s->worker,
                     "%s: name of the IB device not known before the pod runs", nics.data);
    s->notes->warnings.failed |= gpus.failed || nics.failed;
    buf_done(&gpus);
    buf_done(&nics);
}

static int refuse_no_nic(struct settling *s)
{
    struct buf names = BUF_INIT;
    int rc;
    inventory_left(s->inv, &names);
    if (names.len)
        rc = plan_notes_refuse(s->notes, WARN_NO_RDMA_NIC, (int32_t)s->worker,
                               "network: rdma, but no RDMA NIC can carry data: %s", names.data);
    else
        rc = plan_notes_refuse(
            s->notes, WARN_NO_RDMA_NIC, (int32_t)s->worker,
            "network: rdma, but no RDMA NIC was given; network: any does without");
    buf_done(&names);
    return rc;
}

/* 1: refused. */
static int check_network(struct settling *s)
{
    const struct inventory_nic *rdma = inventory_first_rdma(s->inv);
    bool asked = s->in->profile && strcmp(s->in->profile, "auto") != 0;
    if (s->out->nic_count == 0 && s->in->network != SPEC_NETWORK_ANY)
        return refuse_no_nic(s);
    if (s->out->nic_count == 0)
        warnings_add(&s->notes->warnings, WARN_NO_RDMA_NIC, (int32_t)s->worker,
                     "falling back to NCCL_NET=Socket on %s",
                     s->out->tcp_interfaces ? s->out->tcp_interfaces : "the pod interface");
    if (rdma && !asked && s->in->network != SPEC_NETWORK_ANY &&
        strcmp(s->profile->name, "socket") == 0)
        return plan_notes_refuse(
            s->notes, WARN_NO_RDMA_NIC, (int32_t)s->worker,
            "network: rdma, but no profile knows the network of %s, whose link layer "
            "is neither InfiniBand nor Ethernet: name a profile",
            rdma->device.name);
    return 0;
}

int devices_settle(const struct plan_input *input, uint32_t worker,
                   const struct inventory *inventory, const struct profile *profile,
                   struct plan_notes *notes, struct devices *ret_devices, struct drarun_error *err)
{
    struct devices devices = {.c2c = is_c2c(inventory, profile)};
    CLEANUP(devices_donep) struct devices *undo = &devices;
    struct settling s = {.in = input,
                         .worker = worker,
                         .inv = inventory,
                         .profile = profile,
                         .notes = notes,
                         .out = &devices};
    devices.gpus = calloc(inventory->gpu_count + 1, sizeof *devices.gpus);
    devices.nics = calloc(inventory->nic_count + 1, sizeof *devices.nics);
    if (!devices.gpus || !devices.nics)
        return error_set(err, ENOMEM, "plan: out of memory");
    if (profile->data != PROFILE_NETDEV)
        devices.tcp_interfaces = tcp_interfaces(&s);
    take_nics(&s);
    int rc = check_network(&s);
    if (rc != 0)
        return rc;
    take_gpus(&s);
    warn_unknown(&s);
    undo = NULL;
    *ret_devices = devices;
    return 0;
}

void devices_done(struct devices *devices)
{
    free(devices->gpus);
    free(devices->nics);
    *devices = (struct devices){0};
}
