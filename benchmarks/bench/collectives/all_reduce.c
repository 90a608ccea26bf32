/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static double factor(unsigned ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static size_t expected(const struct check *c, void *recv)
{
    data_reduced(&c->data, &c->pattern, 0, c->layout.recv, recv);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->all_reduce(t, err);
}

const struct collective collective_all_reduce = {
    .name = "all_reduce",
    .reduces = true,
    .in_place = true,
    .layout = layout_even,
    .bytes = bytes_once,
    .factor = factor,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
