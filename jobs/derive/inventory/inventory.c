/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/inventory_private.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

/* ---- claims to devices ---- */

static int missing_device(struct reading *r, const struct allocation_result *result)
{
    const struct slice_pool *pool =
        r->in->slices ? slices_pool(r->in->slices, result->driver, result->pool) : NULL;
    const char *why = !pool                         ? "no slice of that pool was given"
                      : slice_pool_incomplete(pool) ? "slices of the pool are missing"
                                                    : "the pool's newest generation has none such";
    return plan_notes_refuse(r->notes, WARN_DEVICE_NOT_IN_SLICES, (int32_t)r->worker,
                             "%s/%s/%s: %s", result->driver, result->pool, result->device, why);
}

/* A driver's own name for the kind of its device is kept, even if that kind is unknown here. */
static bool slice_type(const struct slice_device *slice)
{
    return json_object_get(slice->attributes, "type") != NULL;
}

static void add_unknown(struct reading *r, const struct allocation_result *result)
{
    const char *before = r->inv->unknown ? r->inv->unknown : "";
    r->inv->unknown = plan_notes_text(r->notes, "%s%s%s of %s", before, before[0] ? ", " : "",
                                      result->device, result->driver);
}

static int add_allocation(struct reading *r, const struct allocation *a, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    inv->gpu_asked |= a->gpu_asked;
    if (!inv->node)
        inv->node = a->node;
    for (size_t i = 0; i < a->count; i++) {
        const struct allocation_result *result = &a->results[i];
        const struct slice_device *slice =
            r->in->slices ? slices_find(r->in->slices, result->driver, result->pool, result->device)
                          : NULL;
        struct device device, told;
        bool known = reading_metadata_device(r, result, &told);
        if (!slice && !known && !r->in->slices_unknown)
            return missing_device(r, result);
        if (!slice && !known) {
            int rc = reading_add_unread(r, result, err);
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
            device.kind = reading_role(result);
        if (device.kind == DEVICE_OTHER)
            add_unknown(r, result);
        if (result->pod_name)
            device.pod_name = result->pod_name;
        device.addressed |= json_array_size(result->ips) > 0;
        if (slice && known)
            reading_metadata_fill(r, &device, &told);
        if (!inv->node && slice)
            inv->node = slice->node;
        rc = reading_add_device(r, &device, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_claims(struct reading *r, struct drarun_error *err)
{
    size_t i;
    json_t *claim;
    json_array_foreach(r->in->workers[r->worker].claims, i, claim)
    {
        struct allocation a;
        int rc = allocation_read(claim, &a, err);
        if (rc < 0)
            return rc;
        rc = add_allocation(r, &a, err);
        allocation_done(&a);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* What a driver says of devices that the job does not claim is no reason to refuse it: one that
 * contradicts itself is left out. */
static int read_node_devices(struct reading *r, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    size_t count = 0;
    const struct slice_device *list =
        r->in->slices && inv->node ? slices_of_node(r->in->slices, inv->node, &count) : NULL;
    inv->node_devices = calloc(count + 1, sizeof *inv->node_devices);
    if (!inv->node_devices)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t i = 0; i < count; i++)
        if (device_read(&list[i], &inv->node_devices[inv->node_device_count], NULL) == 0)
            inv->node_device_count++;
    return 0;
}

static int check_mig(struct reading *r)
{
    struct inventory *inv = r->inv;
    if (!inv->mig)
        return 0;
    warnings_add(&r->notes->warnings, WARN_MIG_NO_P2P, (int32_t)r->worker,
                 "MIG devices: no NVLink or P2P between slices; each rank sees one of them");
    for (size_t i = 0; i < inv->gpu_count; i++)
        for (size_t j = i + 1; j < inv->gpu_count; j++) {
            const struct device *a = &inv->gpus[i], *b = &inv->gpus[j];
            const char *parent = a->parent ? a->parent : a->uuid;
            const char *other = b->parent ? b->parent : b->uuid;
            if (parent && other && strcmp(parent, other) == 0)
                return plan_notes_refuse(
                    r->notes, WARN_MIG_SAME_PARENT, (int32_t)r->worker,
                    "%s and %s are of one GPU: NCCL refuses both in a communicator "
                    "(\"Duplicate GPU detected\")",
                    a->name, b->name);
        }
    return 0;
}

static bool gpus_asked(const struct reading *r)
{
    if (r->in->no_gpus)
        return false;
    return r->in->ranks == PLAN_RANKS_GPU || r->inv->gpu_asked || r->in->plugin_gpus > 0;
}

/* "2 of Intel, 1 of another vendor". */
static void add_others(const struct inventory *inv, struct buf *out)
{
    const char *vendor;
    json_t *count;
    value_foreach(inv->probe.other_gpus, vendor, count)
        buf_printf(out, "%s%lld of %s", out->len ? ", " : "", (long long)json_integer_value(count),
                   strcmp(vendor, "other") == 0 ? "another vendor" : vendor);
}

static int refuse_no_gpu(struct reading *r)
{
    uint32_t claimed = r->inv->unread_gpus;
    const char *unknown = r->inv->unknown;
    if (claimed == 0 && unknown)
        return plan_notes_refuse(
            r->notes, WARN_NO_GPU, (int32_t)r->worker,
            "the claims hold %s, and neither attributes nor the request's name say "
            "that it is a GPU: call the request gpu",
            unknown);
    struct buf others = BUF_INIT;
    add_others(r->inv, &others);
    if (others.len) {
        plan_notes_refuse(r->notes, WARN_NO_GPU, (int32_t)r->worker,
                          "the pod shows accelerators that NCCL and RCCL do not drive: %s",
                          others.data);
        buf_done(&others);
        return 1;
    }
    if (claimed == 0)
        return plan_notes_refuse(r->notes, WARN_NO_GPU, (int32_t)r->worker,
                                 "the claims hold no GPU");
    return plan_notes_refuse(
        r->notes, WARN_NO_GPU, (int32_t)r->worker,
        "the pod shows none of the %u GPUs that its claims hold: does the container "
        "list its claim, and does the node have NVIDIA's container toolkit with CDI?",
        claimed);
}

/* NCCL and RCCL, whose variables are set, drive GPUs of two vendors. */
static void warn_vendor(struct reading *r)
{
    struct inventory *inv = r->inv;
    const char *vendor = inv->gpu_count > 0 ? inv->gpus[0].vendor : NULL;
    struct buf others = BUF_INIT;
    if (inv->gpu_count == 0)
        add_others(inv, &others);
    if (others.len)
        warnings_add(&r->notes->warnings, WARN_GPU_VENDOR, (int32_t)r->worker,
                     "accelerators: %s; they are not used, since NCCL and RCCL drive those of "
                     "NVIDIA and AMD",
                     others.data);
    else if (vendor && strcmp(vendor, "AMD") == 0)
        warnings_add(&r->notes->warnings, WARN_GPU_VENDOR, (int32_t)r->worker,
                     "%zu GPUs of AMD: paired with NICs as NCCL would; RCCL's own choice and its "
                     "GPUDirect RDMA are not modelled%s",
                     inv->gpu_count,
                     inv->gpu_count < 2 || !inv->probe.gpus || inventory_has_hip_numbers(inv)
                         ? ""
                         : "; ROCm's order of them is not known (/sys/class/kfd), and it is taken "
                           "for that of their addresses");
    else if (vendor && strcmp(vendor, "NVIDIA") != 0)
        warnings_add(&r->notes->warnings, WARN_GPU_VENDOR, (int32_t)r->worker,
                     "%zu GPUs of %s: neither NCCL nor RCCL drives them; no variable chooses a "
                     "rank's GPU",
                     inv->gpu_count, vendor);
    r->notes->pool.failed |= others.failed;
    buf_done(&others);
}

static int read_sources(struct reading *r, struct drarun_error *err)
{
    const struct plan_worker_input *in = &r->in->workers[r->worker];
    int rc = probe_read(in->probe, &r->inv->probe, err);
    if (rc == 0)
        rc = reading_metadata(r, err);
    if (rc == 0)
        rc = read_claims(r, err);
    if (rc == 0)
        rc = reading_add_visible(r, err);
    if (rc == 0 && !in->claims)
        rc = reading_join_metadata(r, err);
    if (rc == 0)
        rc = read_node_devices(r, err);
    if (rc < 0)
        return error_prefix(err, "worker %u%s%s", r->worker, in->pod ? " " : "",
                            in->pod ? in->pod : "");
    return rc;
}

static int read_worker(struct reading *r, struct drarun_error *err)
{
    struct inventory *inv = r->inv;
    int rc = read_sources(r, err);
    if (rc < 0)
        return rc;
    if (inv->gpu_count == 0 && !inv->probe.present)
        inv->plugin_gpus = r->in->plugin_gpus;
    if (rc == 0 && inv->gpu_count + inv->plugin_gpus == 0 && gpus_asked(r))
        rc = refuse_no_gpu(r);
    if (rc != 0)
        return rc;
    reading_sort(r);
    reading_mark_rdma(r);
    rc = reading_choose_nics(r, err);
    warn_vendor(r);
    return rc < 0 ? rc : check_mig(r);
}

int inventory_read(const struct plan_input *input, uint32_t worker, struct plan_notes *notes,
                   struct inventory *ret_inventory, struct drarun_error *err)
{
    const struct plan_worker_input *in = &input->workers[worker];
    struct inventory inv = {.pod = in->pod, .node = in->node};
    struct reading r = {.in = input, .worker = worker, .notes = notes, .inv = &inv};
    int rc = read_worker(&r, err);
    if (rc < 0) {
        inventory_done(&inv);
        return rc;
    }
    inv.clique = in->clique ? in->clique : plan_input_label(input, inv.node, PLAN_CLIQUE_LABEL);
    *ret_inventory = inv;
    return rc;
}

void inventory_done(struct inventory *inventory)
{
    free(inventory->gpus);
    free(inventory->nics);
    free(inventory->left);
    free(inventory->node_devices);
    metadata_done(&inventory->metadata);
    probe_done(&inventory->probe);
    *inventory = (struct inventory){0};
}
