/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/show/exec_worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "jobs/ranks/rankmap.h"
#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* As the launcher has told it; NULL: by number, or it is no order. */
static uint32_t *read_order(const json_t *doc, uint32_t workers)
{
    const json_t *told = json_object_get(doc, "rankOrder");
    cleanup_free uint32_t *order = calloc(workers + 1u, sizeof *order);
    cleanup_free bool *seen = calloc(workers + 1u, sizeof *seen);
    size_t i;
    json_t *worker;
    if (!order || !seen || json_array_size(told) != workers)
        return NULL;
    json_array_foreach(told, i, worker)
    {
        json_int_t index = json_integer_value(worker);
        if (index < 0 || index >= workers || seen[index])
            return NULL;
        seen[index] = true;
        order[i] = (uint32_t)index;
    }
    return TAKE_PTR(order);
}

/* Any account that may write ConfigMaps of the namespace may have written it. */
static int read_sizes(const json_t *doc, const char *job, uint32_t *ret_ranks,
                      uint32_t *ret_workers, struct drarun_error *err)
{
    json_int_t ranks = json_integer_value(json_object_get(doc, "ranks"));
    json_int_t workers =
        json_integer_value(json_object_get(json_object_get(doc, "workers"), "count"));
    if (ranks < 1 || ranks > RANKMAP_RANKS_MAX || workers < 1 || workers > SPEC_WORKERS_MAX)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EPROTO,
                          "ConfigMap %s-status: expected 1 to %u ranks and 1 to %d workers in its "
                          "status.json, got %" JSON_INTEGER_FORMAT " and %" JSON_INTEGER_FORMAT,
                          job, RANKMAP_RANKS_MAX, SPEC_WORKERS_MAX, ranks, workers);
    *ret_ranks = (uint32_t)ranks;
    *ret_workers = (uint32_t)workers;
    return 0;
}

/* The ranks and workers of each role. A status without roles, or with roles that do not add up to
 * the job's numbers, is one part. */
static size_t read_parts(const json_t *doc, uint32_t ranks, uint32_t workers,
                         struct rank_part parts[SPEC_ROLES_MAX])
{
    const json_t *roles = json_object_get(doc, "roles");
    json_int_t ranks_left = ranks, workers_left = workers;
    size_t count = 0;
    for (; count < json_array_size(roles) && count < SPEC_ROLES_MAX; count++) {
        const json_t *role = json_array_get(roles, count);
        json_int_t own_ranks = json_integer_value(json_object_get(role, "ranks"));
        json_int_t own_workers = json_integer_value(json_object_get(role, "workers"));
        if (own_ranks < 1 || own_ranks > ranks_left || own_workers < 1 ||
            own_workers > workers_left)
            break;
        ranks_left -= own_ranks;
        workers_left -= own_workers;
        parts[count] = (struct rank_part){(uint32_t)own_ranks, (uint32_t)own_workers};
    }
    if (count > 0 && ranks_left == 0 && workers_left == 0)
        return count;
    parts[0] = (struct rank_part){ranks, workers};
    return 1;
}

int exec_worker_of_rank(const json_t *doc, const char *job, uint32_t rank, uint32_t *ret_worker,
                        struct drarun_error *err)
{
    uint32_t count = 0, workers = 0;
    struct rankmap ranks;
    int rc = read_sizes(doc, job, &count, &workers, err);
    if (rc < 0)
        return rc;
    if (rank >= count)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT, "%s has ranks 0 to %" PRIu32, job,
                          count - 1);
    cleanup_free uint32_t *order = read_order(doc, workers);
    struct rank_part parts[SPEC_ROLES_MAX];
    size_t part_count = read_parts(doc, count, workers, parts);
    rc = rankmap_build_parts(parts, part_count, order, &ranks, err);
    if (rc < 0)
        return rc;
    *ret_worker = rankmap_worker(&ranks, rank);
    rankmap_done(&ranks);
    return 0;
}
