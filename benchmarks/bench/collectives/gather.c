/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static size_t expected(const struct check *c, void *recv)
{
    if (c->rank != c->root)
        return 0;
    return expected_parts(c, 0, recv);
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->gather(t, err);
}

const struct collective collective_gather = {
    .name = "gather",
    .rooted = true,
    .in_place = true,
    .layout = layout_gathered,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
