/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/placement/placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/cpus.h"

DEFINE_CLEANUP(struct placement, placement_done)

/* ---- the CPUs of each GPU: those of its NUMA node, in equal shares ---- */

/* "0,2,4,6": machines that number their CPUs in turns over the NUMA nodes. */
static bool is_of_turns(const char *list)
{
    return strchr(list, ',') && !strchr(list, '-');
}

/* The same share of both halves of such a list: the second half are the second hardware threads of
 * the cores of the first, where the cores have two. */
static void cut_turns(const char *list, uint32_t part, uint32_t parts, struct buf *out)
{
    uint32_t *all = NULL;
    size_t count = 0, kept = 0;
    if (cpulist_parse(list, &all, &count, NULL) < 0)
        return;
    const size_t half = count / 2, begins[] = {0, half}, counts[] = {half, count - half};
    for (size_t h = 0; h < ARRAY_LEN(begins); h++) {
        size_t from = counts[h] * part / parts, to = counts[h] * (part + 1) / parts;
        for (size_t i = from; i < to; i++)
            all[kept++] = all[begins[h] + i];
    }
    cpulist_format(all, kept, out);
    free(all);
}

/* Part `part` of `parts` of each range of the list: the ranges are the hardware threads of the same
 * cores, so that a share keeps both threads of its cores. */
static void cut_ranges(const char *list, uint32_t part, uint32_t parts, struct buf *out)
{
    while (*list) {
        char *end = NULL;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (end == list)
            return;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        unsigned long count = last < first || last > CPUS_MAX ? 0 : last - first + 1;
        unsigned long from = first + count * part / parts, to = first + count * (part + 1) / parts;
        if (to > from + 1)
            buf_printf(out, "%s%lu-%lu", out->len ? "," : "", from, to - 1);
        else if (to == from + 1)
            buf_printf(out, "%s%lu", out->len ? "," : "", from);
        list = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0')
            return;
    }
}

/* Leaves what is in both lists, both ascending. */
static void keep_allowed(struct buf *list, const char *allowed)
{
    uint32_t *a = NULL, *b = NULL;
    size_t na = 0, nb = 0, kept = 0;
    if (cpulist_parse(list->data, &a, &na, NULL) == 0 &&
        cpulist_parse(allowed, &b, &nb, NULL) == 0) {
        for (size_t i = 0, j = 0; i < na; i++) {
            while (j < nb && b[j] < a[i])
                j++;
            if (j < nb && b[j] == a[i])
                a[kept++] = a[i];
        }
        buf_reset(list);
        cpulist_format(a, kept, list);
    }
    free(a);
    free(b);
}

static const char *cpus_of(const struct probe *probe, const struct devices *devices, size_t g,
                           struct plan_notes *notes)
{
    int32_t numa = devices->gpus[g].numa;
    uint32_t part = 0, parts = 0;
    if (numa < 0 || numa >= (int32_t)PROBE_NUMAS || !probe->numa_cpus[numa])
        return NULL;
    for (size_t i = 0; i < devices->gpu_count; i++) {
        part += i < g && devices->gpus[i].numa == numa;
        parts += devices->gpus[i].numa == numa;
    }
    CLEANUP(buf_done) struct buf list = BUF_INIT, out = BUF_INIT;
    buf_add_str(&list, probe->numa_cpus[numa]);
    if (list.data && probe->cpuset) /* first: the pod's CPUs are shared, not the node's */
        keep_allowed(&list, probe->cpuset);
    if (list.len > 0 && is_of_turns(list.data))
        cut_turns(list.data, part, parts, &out);
    else if (list.len > 0)
        cut_ranges(list.data, part, parts, &out);
    if (list.len > 0 && out.len == 0) /* more ranks than CPUs: they share */
        buf_add_str(&out, list.data);
    notes->pool.failed |= list.failed || out.failed;
    return out.len ? plan_notes_text(notes, "%s", out.data) : NULL;
}

static int place_gpus(const struct inventory *inventory, const struct devices *devices,
                      struct plan_notes *notes, struct placement_worker *worker,
                      struct drarun_error *err)
{
    worker->cpus = calloc(devices->gpu_count + 1, sizeof *worker->cpus);
    if (!worker->cpus)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t g = 0; g < devices->gpu_count; g++)
        worker->cpus[g] = cpus_of(&inventory->probe, devices, g, notes);
    return 0;
}

/* ---- the ranks ---- */

static uint32_t gpus_of(const struct inventory *inventory, const struct devices *devices)
{
    return (uint32_t)devices->gpu_count + inventory->plugin_gpus;
}

static void number_ranks(const struct plan_input *in, const struct inventory *inventories,
                         const struct devices *devices, struct placement *placement)
{
    bool gpus = true;
    for (size_t w = 0; w < placement->worker_count; w++)
        gpus &= gpus_of(&inventories[w], &devices[w]) > 0;
    placement->per_pod = in->ranks == PLAN_RANKS_POD || !gpus;
    for (size_t i = 0; i < placement->worker_count; i++) {
        size_t w = in->rank_order ? in->rank_order[i] : i;
        placement->workers[w].first_rank = placement->world_size;
        placement->world_size += placement->per_pod ? 1 : gpus_of(&inventories[w], &devices[w]);
    }
}

int placement_make(const struct plan_input *input, const struct inventory *inventories,
                   const struct devices *devices, struct plan_notes *notes,
                   struct placement *ret_placement, struct drarun_error *err)
{
    struct placement placement = {.worker_count = input->worker_count};
    CLEANUP(placement_donep) struct placement *undo = &placement;
    placement.workers = calloc(input->worker_count, sizeof *placement.workers);
    if (!placement.workers)
        return error_set(err, ENOMEM, "plan: out of memory");
    for (size_t w = 0; w < input->worker_count; w++) {
        int rc = place_gpus(&inventories[w], &devices[w], notes, &placement.workers[w], err);
        if (rc < 0)
            return rc;
    }
    number_ranks(input, inventories, devices, &placement);
    undo = NULL;
    *ret_placement = placement;
    return 0;
}

void placement_done(struct placement *placement)
{
    for (size_t w = 0; placement->workers && w < placement->worker_count; w++)
        free(placement->workers[w].cpus);
    free(placement->workers);
    *placement = (struct placement){0};
}
