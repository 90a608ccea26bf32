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
static void take_rank(const json_t *rank, struct result_rank *to)
{
    const json_t *numa = json_object_get(rank, "numa");
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

/* What its worker has, whichever GPU is its own. */
static void take_worker(const json_t *worker, const char *node, struct result_rank *to)
{
    fill(to->node, sizeof to->node, node);
    join(json_object_get(worker, "nics"), to->nic, sizeof to->nic);
}

static struct result_rank *find(struct result *r, json_int_t number)
{
    size_t at = number >= 0 && number < (json_int_t)r->rank_count ? (size_t)number : 0;
    if (at < r->rank_count && r->ranks[at].rank == number)
        return &r->ranks[at];
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].rank == number)
            return &r->ranks[i];
    return NULL;
}

static size_t plugin_gpus(const json_t *worker)
{
    json_int_t count = json_integer_value(json_object_get(worker, "pluginGpus"));
    return count > 0 && count < 1024 ? (size_t)count : 0;
}

static size_t count_ranks(const json_t *workers)
{
    size_t count = 0;
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *worker = json_array_get(workers, w);
        count += json_array_size(json_object_get(worker, "ranks")) + plugin_gpus(worker);
    }
    return count;
}

/* Of GPUs by a device plugin a plan knows the worker's NICs alone. before: ranks of the workers
 * before it, which may not be those that are numbered first; older plans do not say the first. */
static void take_plugin_ranks(const json_t *worker, const char *node, size_t before,
                              struct result *r)
{
    const json_t *number = json_object_get(worker, "firstRank");
    json_int_t first = json_is_integer(number) ? json_integer_value(number) : (json_int_t)before;
    bool known = first >= 0 && first < (json_int_t)r->rank_count;
    for (size_t i = 0; known && i < plugin_gpus(worker); i++) {
        struct result_rank *to = find(r, first + (json_int_t)i);
        if (to)
            take_worker(worker, node, to);
    }
}

int planned_take(const json_t *document, const char *name, struct result *r,
                 struct drarun_error *err)
{
    const json_t *workers = json_object_get(json_object_get(document, "plan"), "workers");
    size_t count = json_array_size(workers), ranks = count_ranks(workers), before = 0;
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
            const json_t *number = json_object_get(rank, "rank");
            struct result_rank *to =
                json_is_integer(number) ? find(r, json_integer_value(number)) : NULL;
            if (!to)
                return no_plan(name, "plan.workers[].ranks[].rank", "a rank of the run", err);
            take_rank(rank, to);
            take_worker(worker, node, to);
        }
        take_plugin_ranks(worker, node, before, r);
        before += json_array_size(of) + plugin_gpus(worker);
    }
    result_clean(r);
    return 0;
}
