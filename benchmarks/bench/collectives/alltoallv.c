/* SPDX-License-Identifier: Apache-2.0 */
/* Of nccl-tests' patterns the one that it has by default (src/alltoallv.cu): rank i has for rank j
 * more the further j is behind i in the ring, and nothing for itself. */
#include <errno.h>
#include <stdlib.h>

#include "benchmarks/bench/collective.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* Elements from one rank to another; `part`: what it were if all had the same. */
static size_t between(unsigned from, unsigned to, size_t part, size_t size, unsigned ranks)
{
    size_t total = part * ranks * size, distance = (to + ranks - from) % ranks;
    double all = (double)ranks * (ranks - 1) / 2;
    double bytes = ranks == 1 ? (double)total : (double)distance * (double)total / all;
    return ((size_t)bytes & ~(size_t)15) / size;
}

/* Where the elements for `to` begin among what `from` sends. */
static size_t begin_of(unsigned from, unsigned to, size_t part, size_t size, unsigned ranks)
{
    size_t begin = 0;
    for (unsigned before = 0; before < to; before++)
        begin += between(from, before, part, size, ranks);
    return begin;
}

/* Every rank sends and receives as much as any other. */
static void layout(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    size_t part = layout_part(count, size, ranks), all = begin_of(0, ranks, part, size, ranks);
    *ret = (struct layout){.send = all, .recv = all, .count = part};
}

static double bytes(size_t count, size_t size, unsigned ranks)
{
    return (double)begin_of(0, ranks, count, size, ranks) * (double)size;
}

static const char *refuses(unsigned ranks)
{
    (void)ranks;
    return getenv("NCCL_TESTS_ALLTOALLV_MATRIX_FILE") || getenv("NCCL_TESTS_ALLTOALLV_SPREAD")
               ? "NCCL_TESTS_ALLTOALLV_MATRIX_FILE and _SPREAD are not known here: only the "
                 "pattern of nccl-tests without them"
               : NULL;
}

static size_t expected(const struct check *c, void *recv)
{
    size_t size = element_size(c->pattern.type), part = c->layout.count;
    char *at = recv;
    for (unsigned from = 0; from < c->ranks; from++) {
        size_t count = between(from, c->rank, part, size, c->ranks);
        data_fill(&c->data, &c->pattern, from, begin_of(from, c->rank, part, size, c->ranks), count,
                  at);
        at += count * size;
    }
    return (size_t)(at - (char *)recv) / size;
}

static int run(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err)
{
    size_t size = element_size(t->type), sent = 0, received = 0;
    cleanup_free struct transfer_part *parts = calloc(world->ranks, sizeof *parts);
    if (!parts)
        return error_set(err, ENOMEM, "out of memory");
    for (unsigned peer = 0; peer < world->ranks; peer++) {
        struct transfer_part *p = &parts[peer];
        p->send_at = sent;
        p->recv_at = received;
        sent += p->send = between(world->rank, peer, t->count, size, world->ranks);
        received += p->recv = between(peer, world->rank, t->count, size, world->ranks);
    }
    return b->alltoallv(t, parts, err);
}

const struct collective collective_alltoallv = {
    .name = "alltoallv",
    .apart = true,
    .refuses = refuses,
    .layout = layout,
    .bytes = bytes,
    .factor = factor_others,
    .fill = fill_own,
    .expected = expected,
    .run = run,
};
