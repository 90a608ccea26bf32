/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

#include <string.h>

#include "lib/base/cleanup.h"

static const struct collective *const all[] = {
    &collective_all_reduce, &collective_all_gather, &collective_reduce_scatter,
    &collective_broadcast,  &collective_reduce,     &collective_alltoall,
    &collective_gather,     &collective_scatter,    &collective_sendrecv,
    &collective_hypercube,
};

const struct collective *collective_at(unsigned i)
{
    return i < ARRAY_LEN(all) ? all[i] : NULL;
}

const struct collective *collective_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        size_t length = strlen(all[i]->name);
        if (strncmp(name, all[i]->name, length) == 0 &&
            (!name[length] || strcmp(name + length, "_perf") == 0))
            return all[i];
    }
    return NULL;
}

void layout_even(size_t count, struct layout *ret)
{
    *ret = (struct layout){.send = count, .recv = count, .count = count};
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
