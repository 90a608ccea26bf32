/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static size_t expected(const struct check *c, void *recv)
{
    data_fill(&c->data, &c->pattern, c->root, 0, c->layout.recv, recv);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->broadcast(t, err);
}

const struct collective collective_broadcast = {
    .name = "broadcast",
    .rooted = true,
    .in_place = true,
    .layout = layout_even,
    .bytes = bytes_once,
    .factor = factor_one,
    .fill = fill_root,
    .expected = expected,
    .run = run,
};
