/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/collective.h"

#include <string.h>

#include "lib/base/cleanup.h"

static const struct collective *const all[] = {
    &collective_all_reduce, &collective_all_gather, &collective_reduce_scatter,
    &collective_broadcast,  &collective_reduce,     &collective_alltoall,
    &collective_gather,     &collective_scatter,    &collective_sendrecv,
    &collective_hypercube,  &collective_alltoallv,  &collective_barrier,
};

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
