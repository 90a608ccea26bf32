/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static void layout(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    (void)count, (void)size, (void)ranks;
    *ret = (struct layout){0};
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world, (void)t;
    return b->barrier(err);
}

const struct collective collective_barrier = {
    .name = "barrier",
    .bare = true,
    .apart = true,
    .layout = layout,
    .bytes = bytes_once,
    .factor = factor_one,
    .run = run,
};
