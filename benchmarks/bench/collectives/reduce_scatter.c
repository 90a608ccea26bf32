/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static size_t expected(const struct check *c, void *recv)
{
    data_reduced(&c->data, &c->pattern, c->rank * c->layout.recv, c->layout.recv, recv);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->reduce_scatter(t, err);
}

const struct collective collective_reduce_scatter = {
    .name = "reduce_scatter",
    .reduces = true,
    .in_place = true,
    .layout = layout_scattered,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
