/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

void layout_even(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    (void)size, (void)ranks;
    *ret = (struct layout){.send = count, .recv = count, .count = count};
}

void layout_gathered(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    size_t part = layout_part(count, size, ranks);
    *ret = (struct layout){.send = part, .recv = part * ranks, .count = part, .send_offset = part};
}

void layout_scattered(size_t count, size_t size, unsigned ranks, struct layout *ret)
{
    size_t part = layout_part(count, size, ranks);
    *ret = (struct layout){.send = part * ranks, .recv = part, .count = part, .recv_offset = part};
}

size_t layout_part(size_t count, size_t size, unsigned ranks)
{
    return count / ranks & ~(16 / size - 1);
}

double bytes_once(size_t count, size_t size, unsigned ranks)
{
    (void)ranks;
    return (double)count * (double)size;
}

double bytes_of_all(size_t count, size_t size, unsigned ranks)
{
    return (double)count * (double)size * ranks;
}

double factor_one(unsigned ranks)
{
    (void)ranks;
    return 1;
}

double factor_others(unsigned ranks)
{
    return (double)(ranks - 1) / ranks;
}

void fill_own(const struct check *c, void *send)
{
    data_fill(&c->data, &c->pattern, c->rank, 0, c->layout.send, send);
}

void fill_root(const struct check *c, void *send)
{
    if (c->rank == c->root)
        fill_own(c, send);
}

size_t expected_parts(const struct check *c, size_t first, void *recv)
{
    size_t part = c->layout.count, size = element_size(c->pattern.type);
    for (unsigned rank = 0; rank < c->ranks; rank++)
        data_fill(&c->data, &c->pattern, rank, first, part, (char *)recv + rank * part * size);
    return c->layout.recv;
}
