/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static void layout(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    size_t part = layout_part(count, size, ranks);
    *ret = (struct layout){.send = part * ranks, .recv = part * ranks, .count = part};
}

static size_t expected(const struct check *c, void *recv)
{
    return expected_parts(c, c->rank * c->layout.count, recv);
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->alltoall(t, err);
}

const struct collective collective_alltoall = {
    .name = "alltoall",
    .layout = layout,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
