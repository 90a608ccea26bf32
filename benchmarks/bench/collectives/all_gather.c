/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static size_t expected(const struct check *c, void *recv)
{
    return expected_parts(c, 0, recv);
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->all_gather(t, err);
}

const struct collective collective_all_gather = {
    .name = "all_gather",
    .in_place = true,
    .layout = layout_gathered,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
