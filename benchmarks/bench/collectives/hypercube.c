/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

/* An all_gather of pairwise exchanges over the dimensions of a cube. */
static double bytes(size_t count, size_t size, unsigned ranks)
{
    return (double)count * (double)size * (ranks - 1);
}

static const char *refuses(unsigned ranks)
{
    return ranks & (ranks - 1) ? "a hypercube has a power of two of ranks" : NULL;
}

static size_t expected(const struct check *c, void *recv)
{
    return expected_parts(c, 0, recv);
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    size_t part = t->count * element_size(t->type);
    char *recv = t->recv;
    if (recv + world->rank * part != t->send)
        b->copy(recv + world->rank * part, t->send, part);
    for (unsigned mask = 1; mask < world->ranks; mask <<= 1) {
        unsigned mine = world->rank & ~(mask - 1), theirs = mine ^ mask;
        struct transfer step = *t;
        step.send = recv + mine * part;
        step.recv = recv + theirs * part;
        step.count = t->count * mask;
        int rc = b->sendrecv(&step, world->rank ^ mask, world->rank ^ mask, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

const struct collective collective_hypercube = {
    .name = "hypercube",
    .in_place = true,
    .refuses = refuses,
    .layout = layout_gathered,
    .bytes = bytes,
    .factor = factor_one,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
