/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static void layout(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    size_t part = layout_part(count, size, ranks);
    *ret = (struct layout){.send = part * ranks, .recv = part, .count = part, .recv_offset = part};
}

static void fill(const struct check *c, void *send)
{
    if (c->rank == c->root)
        pattern_fill(&c->pattern, c->root, 0, c->layout.send, send);
}

static size_t expected(const struct check *c, void *recv)
{
    pattern_fill(&c->pattern, c->root, c->rank * c->layout.recv, c->layout.recv, recv);
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
    .title = "Scatter",
    .rooted = true,
    .in_place = true,
    .layout = layout,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill,
    .expected = expected,
    .run = run,
};
