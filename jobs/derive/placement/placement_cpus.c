/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of each GPU: those of its NUMA node, in equal shares. */
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/plan_private.h"
#include "lib/base/cleanup.h"
#include "lib/topo/cpus.h"

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

/* Leaves what is in both lists, both ascending; all of it where nothing is. */
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

static const char *cpus_of(struct planning *p, const struct plan_worker *worker, size_t g)
{
    int32_t numa = worker->gpus[g].device.numa;
    uint32_t part = 0, parts = 0;
    if (numa < 0 || numa >= (int32_t)PROBE_NUMAS || !worker->probe.numa_cpus[numa])
        return NULL;
    for (size_t i = 0; i < worker->gpu_count; i++) {
        part += i < g && worker->gpus[i].device.numa == numa;
        parts += worker->gpus[i].device.numa == numa;
    }
    struct buf out = BUF_INIT;
    const char *list = worker->probe.numa_cpus[numa];
    if (is_of_turns(list))
        cut_turns(list, part, parts, &out);
    else
        cut_ranges(list, part, parts, &out);
    if (out.len == 0) /* more ranks than CPUs: they share */
        buf_add_str(&out, list);
    if (out.data && worker->probe.cpuset)
        keep_allowed(&out, worker->probe.cpuset);
    const char *text = out.len ? plan_notes_text(p->notes, "%s", out.data) : NULL;
    p->notes->pool.failed |= out.failed;
    buf_done(&out);
    return text;
}

void plan_cut_cpus(struct planning *p, uint32_t w)
{
    struct plan_worker *worker = &p->plan->workers[w];
    for (size_t g = 0; g < worker->gpu_count; g++)
        worker->gpus[g].cpus = cpus_of(p, worker, g);
}
