/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

/* The root's; what others have there is nobody's business. */
static size_t expected(const struct check *c, void *recv)
{
    if (c->rank != c->root)
        return 0;
    data_reduced(&c->data, &c->pattern, 0, c->layout.recv, recv);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->reduce(t, err);
}

const struct collective collective_reduce = {
    .name = "reduce",
    .reduces = true,
    .rooted = true,
    .in_place = true,
    .layout = layout_even,
    .bytes = bytes_once,
    .factor = factor_one,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
