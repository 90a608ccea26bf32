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

struct thread {
    uint32_t cpu;
    size_t core; /* from 0, of its node */
};

/* A share of a node's CPUs. */
struct share {
    uint32_t part, parts;
};

static int by_core(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int by_cpu(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* "0,2,4,6": machines that number their CPUs in turns over the NUMA nodes. */
static bool are_in_turns(const uint32_t *ids, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ids[i] == ids[i - 1] + 1)
            return false;
    return true;
}

/* The end of the run of CPUs that begins here: a range, or a half of those in turns. */
static size_t end_of_run(const uint32_t *ids, size_t count, bool in_turns, size_t begin)
{
    if (in_turns)
        return begin < count / 2 ? count / 2 : count;
    size_t end = begin + 1;
    while (end < count && ids[end] == ids[end - 1] + 1)
        end++;
    return end;
}

/* All CPUs of a node: each run of them is one hardware thread of all cores. A run that is shorter
 * than others, where CPUs are offline, is spread over the cores. */
static void number_cores(const uint32_t *ids, size_t count, struct thread *ret_threads)
{
    bool in_turns = are_in_turns(ids, count);
    size_t cores = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = end_of_run(ids, count, in_turns, begin);
        cores = end - begin > cores ? end - begin : cores;
    }
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = end_of_run(ids, count, in_turns, begin);
        for (size_t i = begin; i < end; i++)
            ret_threads[i] = (struct thread){ids[i], (i - begin) * cores / (end - begin)};
    }
}

/* Leaves those that are allowed; both ascend by CPU. */
static size_t keep_allowed(struct thread *threads, size_t count, const uint32_t *allowed,
                           size_t allowed_count)
{
    size_t kept = 0;
    for (size_t i = 0, j = 0; i < count; i++) {
        while (j < allowed_count && allowed[j] < threads[i].cpu)
            j++;
        if (j < allowed_count && allowed[j] == threads[i].cpu)
            threads[kept++] = threads[i];
    }
    return kept;
}

/* What is left of a node whose own list is one run: its cores have one thread, or their second
 * threads follow the first ones without a gap. CPUs in two halves with the same distances are taken
 * for threads of the same cores. */
static void number_halves(struct thread *threads, size_t count)
{
    size_t half = count / 2;
    if (count % 2 || threads[count - 1].cpu - threads[0].cpu == count - 1)
        return;
    for (size_t i = 1; i < half; i++)
        if (threads[half + i].cpu - threads[i].cpu != threads[half].cpu - threads[0].cpu)
            return;
    for (size_t i = 0; i < count; i++)
        threads[i].core = i % half;
}

/* Leaves a share: of the cores, of the threads if there are fewer cores than shares, or all if
 * there are fewer threads, too. */
static size_t keep_share(struct thread *threads, size_t count, struct share share)
{
    size_t cores = 0, unit = 0, kept = 0;
    if (count < share.parts)
        return count;
    qsort(threads, count, sizeof *threads, by_core);
    for (size_t i = 0; i < count; i++)
        cores += i == 0 || threads[i].core != threads[i - 1].core;
    size_t units = cores < share.parts ? count : cores;
    size_t from = units * share.part / share.parts, to = units * (share.part + 1) / share.parts;
    size_t last = threads[0].core;
    for (size_t i = 0; i < count; i++) {
        unit += i > 0 && (units == count || threads[i].core != last);
        last = threads[i].core; /* the place of threads[i - 1] may be taken */
        if (unit >= from && unit < to)
            threads[kept++] = threads[i];
    }
    qsort(threads, kept, sizeof *threads, by_cpu);
    return kept;
}

/* The share of those CPUs of the list that are in allowed, too; of all if that is NULL or no list.
 * Nothing if the list is none. -ENOMEM. */
static int cut(const char *list, const char *allowed, struct share share, struct buf *out)
{
    cleanup_free uint32_t *ids = NULL, *allowed_ids = NULL;
    size_t count = 0, allowed_count = 0;
    int rc = cpulist_parse(list, &ids, &count, NULL);
    if (rc < 0 || count == 0)
        return rc == -ENOMEM ? rc : 0;
    cleanup_free struct thread *threads = calloc(count, sizeof *threads);
    if (!threads)
        return -ENOMEM;
    number_cores(ids, count, threads);
    rc = allowed ? cpulist_parse(allowed, &allowed_ids, &allowed_count, NULL) : -EINVAL;
    if (rc == -ENOMEM)
        return rc;
    bool one_run = ids[count - 1] - ids[0] == count - 1;
    if (rc == 0)
        count = keep_allowed(threads, count, allowed_ids, allowed_count);
    if (one_run && count > 0)
        number_halves(threads, count);
    count = keep_share(threads, count, share);
    for (size_t i = 0; i < count; i++)
        ids[i] = threads[i].cpu;
    cpulist_format(ids, count, out);
    return out->failed ? -ENOMEM : 0;
}

static const char *cpus_of(const struct probe *probe, const struct devices *devices, size_t g,
                           struct plan_notes *notes)
{
    int32_t numa = devices->gpus[g].numa;
    struct share share = {0};
    if (numa < 0 || numa >= (int32_t)PROBE_NUMAS || !probe->numa_cpus[numa])
        return NULL;
    for (size_t i = 0; i < devices->gpu_count; i++) {
        share.part += i < g && devices->gpus[i].numa == numa;
        share.parts += devices->gpus[i].numa == numa;
    }
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    notes->pool.failed |= cut(probe->numa_cpus[numa], probe->cpuset, share, &out) < 0;
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
    placement->per_pod = in->ranks_each <= 1 && (in->ranks == PLAN_RANKS_POD || !gpus);
    for (size_t i = 0; i < placement->worker_count; i++) {
        size_t w = in->rank_order ? in->rank_order[i] : i;
        uint32_t own = placement->per_pod ? 1 : gpus_of(&inventories[w], &devices[w]);
        uint32_t count = in->ranks_each > 0 ? in->ranks_each : own;
        placement->shared |= count != own;
        placement->workers[w].first_rank = placement->world_size;
        placement->world_size += count;
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
