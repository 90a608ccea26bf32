/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

static void layout(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    size_t part = layout_part(count, size, ranks);
    *ret = (struct layout){.send = part, .recv = part * ranks, .count = part, .send_offset = part};
}

static void fill(const struct check *c, void *send)
{
    pattern_fill(&c->pattern, c->rank, 0, c->layout.send, send);
}

static size_t expected(const struct check *c, void *recv)
{
    size_t part = c->layout.count, size = element_size(c->pattern.type);
    for (unsigned rank = 0; rank < c->ranks; rank++)
        pattern_fill(&c->pattern, rank, 0, part, (char *)recv + rank * part * size);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    (void)world;
    return b->all_gather(t, err);
}

const struct collective collective_all_gather = {
    .name = "all_gather",
    .title = "AllGather",
    .in_place = true,
    .layout = layout,
    .bytes = bytes_of_all,
    .factor = factor_others,
    .fill = fill,
    .expected = expected,
    .run = run,
};
