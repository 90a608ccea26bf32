/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a worker, and when: docs/design/018-inspection.md has the table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/preflight/nic_check.h"
#include "jobs/preflight/preflight_private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define UNLIMITED (-1)

/* NCCL's and MPI's buffers come on top of what nic_check.h asks for. */
#define MEMLOCK_ENOUGH (1 * GIB)
/* A container's own /dev/shm has 64 MiB. */
#define SHM_LEAST (128 * MIB)
#define SHM_ENOUGH (1 * GIB)
#define SESSION_LEAST (1 * MIB)

/* One worker under inspection. */
struct look {
    struct preflight_run *run;
    const struct job_spec *spec;
    const struct spec_role *role;      /* of the worker */
    const struct plan_worker *planned; /* NULL: no plan */
    const json_t *document, *verbs;
    const char *device; /* that is checked */
    uint32_t index;
    bool rdma;         /* it is to move data by verbs */
    bool memlock_told; /* what follows from the limit on locked memory has been */
};

static bool is_false(const json_t *object, const char *key)
{
    return json_is_false(json_object_get(object, key));
}

/* False where it is not known. */
static bool number_at(const json_t *object, const char *key, int64_t *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return false;
    *ret_value = json_integer_value(value);
    return true;
}

#define refuse(look, code, cure, ...)                                                              \
    preflight_add((look)->run, code, true, (look)->index, cure, __VA_ARGS__)
#define warn(look, code, cure, ...)                                                                \
    preflight_add((look)->run, code, false, (look)->index, cure, __VA_ARGS__)

/* ---- NICs ---- */

#define NIC_CURE                                                                                   \
    "does the container list its claim, and does the NIC's driver put the device into the pod "    \
    "(kubectl describe resourceclaim, the driver's log on the node)?"

static enum preflight_code code_of(enum nic_fault fault)
{
    static const enum preflight_code codes[] = {
        [NIC_FAULT_CLOSED] = PREFLIGHT_VERBS_CLOSED, [NIC_FAULT_DOWN] = PREFLIGHT_LINK_DOWN,
        [NIC_FAULT_GID] = PREFLIGHT_NO_GID,          [NIC_FAULT_SLOW] = PREFLIGHT_LINK_SLOW,
        [NIC_FAULT_QUEUES] = PREFLIGHT_NIC_QUEUES,   [NIC_FAULT_MEMLOCK] = PREFLIGHT_MEMLOCK,
        [NIC_FAULT_MEMORY] = PREFLIGHT_NIC_MEMORY,   [NIC_FAULT_UNTRIED] = PREFLIGHT_NIC_UNTRIED,
    };
    return codes[fault];
}

static void note_nic(struct look *look, enum preflight_code code, uint32_t port, bool failed,
                     const char *text)
{
    if (look->run->in->fabric && look->device)
        fabric_note(look->run->in->fabric, look->index, look->device, port, failed,
                    preflight_name(code), text);
}

/* A job that runs without RDMA, too, is not kept from it. */
static void add_fault(void *arg, enum nic_fault fault, uint32_t port, bool failed, const char *cure,
                      const char *text)
{
    struct look *look = arg;
    note_nic(look, code_of(fault), port, failed, text);
    look->memlock_told |= fault == NIC_FAULT_MEMLOCK;
    preflight_add(look->run, code_of(fault), failed && look->spec->network != SPEC_NETWORK_ANY,
                  look->index, cure, "%s", text);
}

/* What its driver has published of a NIC's speed; 0: nothing. */
static uint32_t published_mbps(const struct device *device)
{
    const json_t *attributes = device && device->slice ? device->slice->attributes : NULL;
    const json_t *speed = json_object_get(json_object_get(attributes, "drarun.dev/speed"), "int");
    json_int_t mbps = json_integer_value(speed);
    return mbps > 0 && mbps < UINT32_MAX ? (uint32_t)mbps : 0;
}

/* As nic_check has it; 0: not known. */
static uint32_t bit_of(uint32_t port)
{
    return port > 0 && port < 32 ? 1u << port : 0;
}

static uint32_t bits_of(const struct inventory_nic *nic)
{
    const struct topo_port *ports[DATA_NIC_PORTS_MAX];
    uint32_t bits = 0;
    for (size_t i = inventory_nic_ports(nic, ports); i-- > 0;)
        bits |= bit_of(ports[i]->number);
    return bits;
}

/* device: of the claim; NULL: not claimed. ports: of it that carry data, as nic_check has them. */
static void check_device(struct look *look, const json_t *verbs, const struct device *device,
                         uint32_t ports)
{
    const struct nic_check check = {
        .device = verbs,
        .netdevs = json_object_get(look->document, "netdevs"),
        .limits = json_object_get(look->document, "limits"),
        .published_mbps = published_mbps(device),
        .ports = ports,
        .open = look->spec->fabric >= SPEC_FABRIC_OPEN,
        .fn = add_fault,
        .arg = look,
    };
    look->device = value_text_or(verbs, "device", NULL);
    nic_check(&check);
}

static void miss_nic(struct look *look, const struct inventory_nic *nic)
{
    char text[160];
    snprintf(text, sizeof text, "its claimed NIC %s has no RDMA device in the pod", nic->label);
    look->device = nic->ibdev ? nic->ibdev : nic->label;
    note_nic(look, PREFLIGHT_NIC_MISSING, 0, true, text);
    refuse(look, PREFLIGHT_NIC_MISSING, NIC_CURE, "%s", text);
}

static void check_planned_nic(struct look *look, const struct inventory_nic *nic)
{
    const struct device *device = &nic->device;
    const json_t *netdevs = json_object_get(look->document, "netdevs");
    const json_t *found = value_find(look->verbs, "device", nic->ibdev);
    if (look->rdma && found)
        check_device(look, found, device, bits_of(nic));
    else if (look->rdma)
        miss_nic(look, nic);
    else if (device->pod_name && netdevs && !value_find(netdevs, "name", device->pod_name))
        refuse(look, PREFLIGHT_NIC_MISSING, NIC_CURE,
               "its claimed NIC %s has no interface %s in the pod", nic->label, device->pod_name);
}

/* A claimed NIC was meant to carry data: its link is down on this node alone. */
static void check_left_nics(struct look *look)
{
    for (size_t i = 0; look->rdma && i < look->planned->left_count; i++) {
        const struct plan_left_nic *left = &look->planned->left[i];
        const json_t *found = value_find(look->verbs, "device", left->ibdev);
        if (left->use == NIC_USE_DOWN && left->claimed && found)
            check_device(look, found, &left->device, bit_of(left->device.port));
    }
}

static void check_nics(struct look *look)
{
    size_t i, count = json_array_size(look->verbs);
    json_t *verbs;
    if (look->planned) {
        for (i = 0; i < look->planned->nic_count; i++)
            check_planned_nic(look, &look->planned->nics[i].found);
        check_left_nics(look);
        if (look->rdma && look->planned->unread_nics > look->planned->nic_count)
            refuse(look, PREFLIGHT_NIC_MISSING, NIC_CURE, "it has %zu RDMA devices of %u NICs",
                   look->planned->nic_count, look->planned->unread_nics);
        return;
    }
    if (!look->rdma)
        return;
    if (count < look->role->nics.count)
        refuse(look, PREFLIGHT_NIC_MISSING, NIC_CURE, "it has %zu RDMA devices of %u NICs", count,
               look->role->nics.count);
    json_array_foreach(look->verbs, i, verbs)
    {
        check_device(look, verbs, NULL, 0);
    }
}

/* ---- limits ---- */

static void check_memlock(struct look *look)
{
    const json_t *limits = json_object_get(look->document, "limits");
    char text[32];
    int64_t memlock = 0;
    if (!look->rdma || look->memlock_told || !is_false(limits, "ipcLock") ||
        !number_at(limits, "memlock", &memlock) || memlock == UNLIMITED ||
        memlock >= MEMLOCK_ENOUGH)
        return;
    nic_bytes_text(memlock, text, sizeof text);
    const char *cure = nic_memlock_cure(limits);
    if (nic_memlock_small(limits))
        refuse(look, PREFLIGHT_MEMLOCK, cure,
               "it may lock %s of memory, and RDMA must lock the memory that it transfers", text);
    else
        warn(look, PREFLIGHT_MEMLOCK, cure, "it may lock no more than %s of memory for RDMA", text);
}

static uint32_t ranks_of(const struct look *look)
{
    if (look->role->ranks_per_worker)
        return look->role->ranks_per_worker;
    return look->planned && look->planned->gpu_count > 0 ? (uint32_t)look->planned->gpu_count
           : look->role->gpus.count                      ? look->role->gpus.count
                                                         : 1;
}

#define SHM_CURE                                                                                   \
    "mount an emptyDir with medium Memory at /dev/shm (drarun does where the template mounts "     \
    "nothing there), and leave it room in the memory limit"

static void check_shm(struct look *look)
{
    const json_t *limits = json_object_get(look->document, "limits");
    char text[32];
    int64_t size = 0;
    if (ranks_of(look) < 2 || !number_at(limits, "shm", &size) || size == UNLIMITED)
        return;
    nic_bytes_text(size, text, sizeof text);
    if (size < SHM_LEAST)
        refuse(look, PREFLIGHT_SHM, SHM_CURE, "its /dev/shm has %s, for %u ranks", text,
               ranks_of(look));
    else if (size < SHM_ENOUGH && look->role->gpus.count > 0)
        warn(look, PREFLIGHT_SHM, SHM_CURE, "its /dev/shm has only %s, for %u ranks", text,
             ranks_of(look));
    if (is_false(limits, "shmInMemory"))
        warn(look, PREFLIGHT_SHM, SHM_CURE, "its /dev/shm is not in memory");
}

static void check_session(struct look *look)
{
    const json_t *session = json_object_get(look->document, "session");
    const char *dir = value_text_or(session, "dir", "");
    char text[32];
    int64_t room = 0;
    if (!session)
        return;
    if (!dir[0])
        refuse(look, PREFLIGHT_SESSION,
               "mount an emptyDir at /tmp, or set TMPDIR to a directory that the user may write",
               "it can write neither $TMPDIR, /tmp, /dev/shm nor /run");
    else if (number_at(session, "free", &room) && room != UNLIMITED && room < SESSION_LEAST)
        refuse(look, PREFLIGHT_SESSION, "make room there, or set TMPDIR to another directory",
               "%s has %s left", dir, nic_bytes_text(room, text, sizeof text));
}

/* ---- GPUs ---- */

static bool any_mig(const struct plan_worker *worker)
{
    for (size_t i = 0; worker && i < worker->gpu_count; i++)
        if (worker->gpus[i].device.kind == DEVICE_MIG)
            return true;
    return false;
}

static int64_t gpus_wanted(const struct look *look)
{
    const struct plan_worker *planned = look->planned;
    if (!planned)
        return look->role->gpus.count;
    return planned->unread_gpus > planned->gpu_count ? planned->unread_gpus
                                                     : (int64_t)planned->gpu_count;
}

static void check_gpus(struct look *look)
{
    const json_t *probe = json_object_get(look->document, "probe");
    int64_t seen = 0;
    int64_t wanted = gpus_wanted(look);
    size_t i;
    json_t *node;
    if (wanted > 0 && !any_mig(look->planned) && number_at(probe, "visibleGpus", &seen) &&
        seen < wanted)
        refuse(look, PREFLIGHT_GPU_MISSING,
               "does the container list its claim, and does the node have NVIDIA's container "
               "toolkit with CDI?",
               "it sees %" PRId64 " of %" PRId64 " GPUs", seen, wanted);
    json_array_foreach(json_object_get(look->document, "gpuNodes"), i, node)
    {
        if (wanted > 0 && is_false(node, "opens"))
            refuse(look, PREFLIGHT_GPU_CLOSED,
                   "the driver must allow the container's user to read and write that node",
                   "it may not open %s: %s", value_text_or(node, "path", ""),
                   value_text_or(node, "why", ""));
    }
}

/* ---- PCIe ---- */

static bool is_planned(const struct look *look, uint64_t pci)
{
    const struct plan_worker *planned = look->planned;
    if (!planned)
        return true;
    for (size_t i = 0; i < planned->gpu_count; i++)
        if (planned->gpus[i].device.pci == pci)
            return true;
    for (size_t i = 0; i < planned->nic_count; i++)
        if (planned->nics[i].found.device.pci == pci)
            return true;
    return false;
}

static void check_narrow(struct look *look)
{
    size_t i;
    json_t *link;
    json_array_foreach(json_object_get(look->document, "narrow"), i, link)
    {
        const char *address = value_text_or(link, "pci", "");
        int64_t lanes = 0, most = 0, speed = 0, fastest = 0;
        number_at(link, "lanes", &lanes);
        number_at(link, "maxLanes", &most);
        number_at(link, "mts", &speed);
        number_at(link, "maxMts", &fastest);
        if (is_planned(look, pci_parse(address)))
            warn(look, PREFLIGHT_LINK_NARROW,
                 "look at LnkSta of lspci -vv on the node; reseat the card or its riser",
                 "the PCIe link of its %s %s has %" PRId64 " of %" PRId64 " lanes at %g of %g GT/s",
                 value_text_or(link, "kind", "device"), address, lanes, most, (double)speed / 1000,
                 (double)fastest / 1000);
    }
}

/* ---- alignment ---- */

static void check_alignment(struct look *look)
{
    const struct plan *plan = look->run->in->plan;
    if (!plan || look->role->align != SPEC_ALIGN_REQUIRED ||
        claims_alignment(look->role) != CLAIMS_ALIGNED_IN_POD)
        return;
    for (size_t i = 0; i < plan->warnings.count; i++) {
        const struct warning *warning = &plan->warnings.list[i];
        /* without a common root the NUMA node is what `required` promises */
        bool bridge = warning->code == WARN_MISALIGNED_PHB || warning->code == WARN_MISALIGNED_NODE;
        bool far = warning->code == WARN_MISALIGNED_SYS || (bridge && !look->role->machine.no_root);
        if (warning->worker == (int32_t)look->index && far)
            refuse(look, PREFLIGHT_NOT_ALIGNED,
                   "claim the GPUs, too, so that a constraint can pair them, take whole nodes, or "
                   "say align: preferred",
                   "align: required, but %s", warning->detail);
    }
}

/* ---- workers against each other ---- */

static const json_t *versions_of(const struct preflight_input *in, uint32_t worker)
{
    return json_object_get(in->workers[worker].inspection, "versions");
}

static void check_versions(struct look *look)
{
    const struct preflight_input *in = look->run->in;
    static const char *const keys[] = {"pmix", "drarun"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *own = value_text_or(versions_of(in, look->index), keys[i], "");
        const char *first = value_text_or(versions_of(in, 0), keys[i], "");
        if (!own[0] || !first[0] || strcmp(own, first) == 0)
            continue;
        preflight_add(look->run, PREFLIGHT_VERSIONS, i == 0, look->index,
                      "use one image of drarun for all workers: the two cannot exchange data",
                      "its agent has %s %s, worker 0's has %s", i == 0 ? "libpmix" : "drarun", own,
                      first);
    }
}

static size_t hca_count(const struct preflight_input *in, uint32_t worker)
{
    return json_array_size(json_object_get(in->workers[worker].inspection, "verbs"));
}

/* The end of a role's workers, of those that there are. */
static uint32_t end_of(const struct preflight_input *in, const struct spec_role *role)
{
    uint32_t end = role->first + role->workers;
    return end < in->count ? end : in->count;
}

/* "8 on workers 0-2, 7 on worker 3": every group, in the order of their first workers. */
static void add_groups(const struct preflight_input *in, const struct spec_role *role,
                       struct buf *out)
{
    uint32_t end = end_of(in, role);
    for (uint32_t w = role->first; w < end; w++) {
        size_t count = hca_count(in, w);
        uint32_t seen = role->first, more = 0;
        while (seen < w && hca_count(in, seen) != count)
            seen++;
        if (seen < w || !in->workers[w].inspection)
            continue;
        for (uint32_t other = w + 1; other < end; other++)
            more += in->workers[other].inspection && hca_count(in, other) == count;
        buf_printf(out, "%s%zu on worker %u", out->len ? ", " : "", count, w);
        if (more > 0)
            buf_printf(out, " and %u more", more);
    }
}

/* Workers of a role hold the same. */
static void check_hca_counts(struct preflight_run *run, const struct spec_role *role)
{
    const struct preflight_input *in = run->in;
    bool reported = false;
    for (uint32_t w = role->first + 1; w < end_of(in, role) && !reported; w++) {
        struct buf groups = BUF_INIT;
        if (!in->workers[role->first].inspection || !in->workers[w].inspection ||
            hca_count(in, w) == hca_count(in, role->first))
            continue;
        add_groups(in, role, &groups);
        preflight_add(
            run, PREFLIGHT_HCA_COUNT, true, w,
            "NCCL and MPI pair the NICs of two workers by their number: give every worker "
            "the same claim, on nodes of one kind",
            "the workers hold different numbers of RDMA devices: %s",
            groups.data ? groups.data : "");
        run->failed |= groups.failed;
        buf_done(&groups);
        reported = true;
    }
}

/* ---- all ---- */

static bool moves_by_verbs(const struct preflight_input *in, uint32_t worker,
                           const struct plan_worker *planned)
{
    if (planned)
        return planned->nic_count > 0 && planned->profile && planned->profile->data == PROFILE_RDMA;
    return spec_role_of(in->spec, worker)->nics.count > 0 && in->spec->network == SPEC_NETWORK_RDMA;
}

static void check_worker(struct preflight_run *run, uint32_t worker)
{
    static void (*const checks[])(struct look *) = {
        check_nics, check_memlock, check_shm,       check_session,
        check_gpus, check_narrow,  check_alignment, check_versions,
    };
    const struct preflight_input *in = run->in;
    const json_t *document = in->workers[worker].inspection;
    const struct plan_worker *planned =
        in->plan && worker < in->plan->worker_count ? &in->plan->workers[worker] : NULL;
    struct look look = {.run = run,
                        .spec = in->spec,
                        .role = spec_role_of(in->spec, worker),
                        .planned = planned,
                        .document = document,
                        .verbs = json_object_get(document, "verbs"),
                        .index = worker,
                        .rdma = moves_by_verbs(in, worker, planned)};
    if (!document) {
        refuse(&look, PREFLIGHT_NOT_INSPECTED,
               "use the same release of drarun in the launcher and in the workers",
               "its agent did not report what its pod holds");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        checks[i](&look);
}

static bool any_moves_by_verbs(const struct preflight_input *in, const struct spec_role *role)
{
    bool any = false;
    for (uint32_t w = role->first; w < end_of(in, role); w++)
        any |= moves_by_verbs(
            in, w, in->plan && w < in->plan->worker_count ? &in->plan->workers[w] : NULL);
    return any;
}

void preflight_rules(struct preflight_run *run)
{
    const struct job_spec *spec = run->in->spec;
    for (uint32_t w = 0; w < run->in->count; w++)
        check_worker(run, w);
    for (uint32_t r = 0; r < spec->role_count; r++)
        if (any_moves_by_verbs(run->in, &spec->roles[r]))
            check_hca_counts(run, &spec->roles[r]);
}

/* ---- NICs that reach each other ---- */

static const char *reach_cure(const struct reach_pair *pair)
{
    switch (pair->fault) {
    case REACH_FAULT_OPEN:
    case REACH_FAULT_PORT:
        return "compare with ibv_devinfo -v in the pod";
    case REACH_FAULT_ROUTE:
        return "do both have addresses of one network, or a route to the other's, and are the "
               "cables of the two in switches of one rail?";
    case REACH_FAULT_RETRY:
        return "do the rail's switches carry RoCE between the two (VLAN, routes, UDP port 4791 in "
               "firewalls; with InfiniBand the partition), and is the MTU the same all the way?";
    default:
        return "look at the counters of both NICs and of the switch ports between them";
    }
}

/* "worker 2 (train-w-2 on node-7)". */
static void name_worker(const struct preflight_input *in, uint32_t worker, char *text, size_t size)
{
    const struct preflight_worker *w = &in->workers[worker];
    snprintf(text, size, "worker %u%s%s%s%s%s", worker, w->pod ? " (" : "", w->pod ? w->pod : "",
             w->pod && w->node ? " on " : "", w->pod && w->node ? w->node : "", w->pod ? ")" : "");
}

/* A job that runs without RDMA, too, is not kept from it. */
void preflight_reach_rules(struct preflight_run *run, const struct reach *reach)
{
    const struct preflight_input *in = run->in;
    bool any = in->spec->network == SPEC_NETWORK_ANY;
    char to[256];
    for (size_t i = 0; i < reach_pair_count(reach); i++) {
        const struct reach_pair *pair = reach_pair_at(reach, i);
        const char *own = reach_rail_label(reach, pair->from, pair->rail);
        const char *other = reach_rail_label(reach, pair->to, pair->rail);
        const char *why = pair->why ? pair->why : "out of memory";
        if (pair->echo)
            continue;
        name_worker(in, pair->to, to, sizeof to);
        if (pair->result == REACH_FAILED)
            preflight_add(run, PREFLIGHT_UNREACHED, !any, pair->from, reach_cure(pair),
                          "its NIC %s -> %s %s: %s", own, to, other, why);
        else if (pair->result != REACH_REACHED)
            preflight_add(run, PREFLIGHT_REACH_UNKNOWN, false, pair->from,
                          "preflight: {fabric: open} in the job leaves it out",
                          "it is not known whether its NIC %s reaches %s %s: %s", own, to,
                          other[0] ? other : "at all", why);
    }
}
