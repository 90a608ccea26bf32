/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static void layout(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    (void)size, (void)ranks;
    layout_even(count, ret);
}

static double factor(unsigned ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static void fill(const struct check *c, void *send)
{
    pattern_fill(&c->pattern, c->rank, 0, c->layout.send, send);
}

static size_t expected(const struct check *c, void *recv)
{
    pattern_reduced(&c->pattern, 0, c->layout.recv, recv);
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
    .title = "AllReduce",
    .reduces = true,
    .in_place = true,
    .layout = layout,
    .bytes = bytes_once,
    .factor = factor,
    .fill = fill,
    .expected = expected,
    .run = run,
};
