/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import/ranks.h"

#include <errno.h>
#include <inttypes.h>

#include "lib/base/error.h"

#define ALIKE "the workers of a job have the same number of ranks"

static int uneven(const struct import_ranks *a, uint64_t workers, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "%" PRIu64 " ranks cannot be divided among %" PRIu64 " workers: " ALIKE,
                      a->ranks, workers);
}

/* The same number on each worker, or one on each of the first. */
static int spread_evenly(const struct import_ranks *a, uint64_t workers, uint64_t *ret_workers,
                         uint64_t *ret_each, struct drarun_error *err)
{
    if (a->ranks < workers) {
        *ret_workers = a->ranks;
        *ret_each = 1;
        return 0;
    }
    if (a->ranks % workers != 0)
        return uneven(a, workers, err);
    *ret_workers = workers;
    *ret_each = a->ranks / workers;
    return 0;
}

int import_spread(const struct import_ranks *a, uint64_t *ret_workers, uint64_t *ret_each,
                  struct drarun_error *err)
{
    uint64_t workers = a->nodes ? a->nodes : a->workers, room = a->each ? a->each : a->slots;
    if (workers > a->workers)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%" PRIu64 " nodes are asked for, and there are %" PRIu64 " workers",
                          workers, a->workers);
    if (a->ranks == 0) {
        *ret_workers = workers;
        *ret_each = room;
        return 0;
    }
    bool fits = room == 0 || a->ranks <= workers * room;
    if (!fits && !a->may_exceed)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%" PRIu64 " ranks are more than %" PRIu64 " workers with %" PRIu64
                          " slots hold, and mpirun refuses that without --oversubscribe",
                          a->ranks, workers, room);
    if (a->by_node || a->nodes || !fits || room == 0)
        return spread_evenly(a, workers, ret_workers, ret_each, err);
    if (a->ranks <= room) {
        *ret_workers = 1;
        *ret_each = a->ranks;
        return 0;
    }
    if (a->ranks % room != 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%" PRIu64 " ranks fill %" PRIu64 " workers with %" PRIu64
                          " each and leave %" PRIu64 " for another: " ALIKE,
                          a->ranks, a->ranks / room, room, a->ranks % room);
    *ret_workers = a->ranks / room;
    *ret_each = room;
    return 0;
}
