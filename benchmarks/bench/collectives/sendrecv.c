/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

/* A ring: to the next rank, from the one before. */
static size_t expected(const struct check *c, void *recv)
{
    data_fill(&c->data, &c->pattern, (c->rank + c->ranks - 1) % c->ranks, 0, c->layout.recv, recv);
    return c->layout.recv;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    unsigned last = world->ranks - 1; /* no division: this is in the time */
    unsigned next = world->rank < last ? world->rank + 1 : 0;
    unsigned before = world->rank > 0 ? world->rank - 1 : last;
    return b->sendrecv(t, next, before, err);
}

const struct collective collective_sendrecv = {
    .name = "sendrecv",
    .layout = layout_even,
    .bytes = bytes_once,
    .factor = factor_one,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
