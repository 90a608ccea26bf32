/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/planned.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/value.h"

static int no_plan(const char *name, const char *path, const char *expected,
                   struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "%s: %s: expected %s, as drarun plan -o json writes it with --slices", name,
                      path, expected);
}

static void fill(char *to, size_t size, const char *text)
{
    if (!to[0] && text)
        snprintf(to, size, "%s", text);
}

static void join(const json_t *list, char *to, size_t size)
{
    size_t length = 0;
    bool known = to[0] != '\0';
    for (size_t i = 0; !known && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && length + strlen(text) + 2 < size)
            length += (size_t)snprintf(to + length, size - length, "%s%s", length ? "," : "", text);
    }
}

/* Each rank has a GPU of its own and NICs to go with it. */
static void take_rank(const json_t *rank, const char *node, struct result_rank *to)
{
    const json_t *numa = json_object_get(rank, "numa");
    fill(to->node, sizeof to->node, node);
    fill(to->address, sizeof to->address, value_text(rank, "pci"));
    join(json_object_get(rank, "nics"), to->nearest, sizeof to->nearest);
    fill(to->nic, sizeof to->nic, to->nearest);
    fill(to->path, sizeof to->path,
         json_string_value(json_array_get(json_object_get(rank, "path"), 0)));
    if (to->numa < 0 && json_is_integer(numa))
        to->numa = (int)json_integer_value(numa);
}

static const char *node_of(const json_t *document, size_t worker)
{
    const json_t *workers = json_object_get(json_object_get(document, "prediction"), "workers");
    return value_text(json_array_get(workers, worker), "node");
}

/* Of GPUs by a device plugin a plan knows the worker's NICs alone. */
static void take_worker(const json_t *worker, const char *node, struct result *r, size_t first,
                        size_t count)
{
    for (size_t i = first; i < first + count && i < r->rank_count; i++) {
        fill(r->ranks[i].node, sizeof r->ranks[i].node, node);
        join(json_object_get(worker, "nics"), r->ranks[i].nic, sizeof r->ranks[i].nic);
    }
}

static struct result_rank *find(struct result *r, const json_t *number)
{
    for (size_t i = 0; json_is_integer(number) && i < r->rank_count; i++)
        if (r->ranks[i].rank == (unsigned)json_integer_value(number))
            return &r->ranks[i];
    return NULL;
}

static size_t count_ranks(const json_t *workers)
{
    size_t count = 0;
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *worker = json_array_get(workers, w);
        json_int_t plugin = json_integer_value(json_object_get(worker, "pluginGpus"));
        count += json_array_size(json_object_get(worker, "ranks")) +
                 (plugin > 0 && plugin < 1024 ? (size_t)plugin : 0);
    }
    return count;
}

int planned_take(const json_t *document, const char *name, struct result *r,
                 struct drarun_error *err)
{
    const json_t *workers = json_object_get(json_object_get(document, "plan"), "workers");
    size_t count = json_array_size(workers), ranks = count_ranks(workers);
    if (count == 0)
        return no_plan(name, "plan.workers", "a list of workers", err);
    if (ranks != r->rank_count)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s plans %zu ranks, and the run has %zu",
                          name, ranks, r->rank_count);
    for (size_t w = 0; w < count; w++) {
        const json_t *worker = json_array_get(workers, w), *of = json_object_get(worker, "ranks");
        const char *node = node_of(document, w);
        for (size_t i = 0; i < json_array_size(of); i++) {
            const json_t *rank = json_array_get(of, i);
            struct result_rank *to = find(r, json_object_get(rank, "rank"));
            if (!to)
                return no_plan(name, "plan.workers[].ranks[].rank", "a rank of the run", err);
            take_rank(rank, node, to);
        }
        take_worker(worker, node, r, w * (ranks / count), ranks / count);
    }
    result_clean(r);
    return 0;
}
