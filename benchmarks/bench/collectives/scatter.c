/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static size_t expected(const struct check *c, void *recv)
{
    data_fill(&c->data, &c->pattern, c->root, c->rank * c->layout.recv, c->layout.recv, recv);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->scatter(t, err);
}

const struct collective collective_scatter = {
    .name = "scatter",
    .rooted = true,
    .in_place = true,
    .layout = layout_scattered,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill_root,
    .expected = expected,
    .run = run,
};
