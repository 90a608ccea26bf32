/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs each rank of a worker is bound to. Pure. */
#ifndef DRARUN_JOBS_BINDING_H
#define DRARUN_JOBS_BINDING_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/topo/cpus.h"
#include "drarun/error.h"

enum bind_kind { BIND_NONE = 1, BIND_CORE, BIND_NUMA, BIND_LIST };

struct bind_policy {
    enum bind_kind kind;
    uint32_t cores; /* BIND_CORE: of each rank, at least 1 */
    /* BIND_LIST: "0-1;2,3" gives the first local rank CPUs 0-1, the second 2,3, and so on in turn;
     * a list without ";" is one set per id, in its order: "4,0,2". Borrowed. */
    const char *list;
};

/* "none", "core", "core:N", "numa" or a list; kind DRARUN_ERR_USAGE with what was expected. */
int bind_parse(const char *text, struct bind_policy *ret_policy, struct drarun_error *err);

/* The CPUs for local rank `local_rank` of `local_size`, the ranks that share this machine (of all
 * its agents: another size for each would give them the same cores). core: the hardware threads of
 * one core each, spread so that neighbours share a NUMA node; core:N: of N cores each, of one NUMA
 * node as long as all ranks find room so; numa: one NUMA node each, in contiguous shares by its
 * cores. More ranks than cores are enough for, or than sets of a list: they share in turn,
 * *ret_shared says so. BIND_NONE gives count 0. The ids are malloc'ed and ascend. A list that names
 * a CPU that is not usable is an error that names it, and so is core:N with fewer cores. */
int bind_cpus(const struct bind_policy *policy, const struct cpus *cpus, uint32_t local_rank,
              uint32_t local_size, uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
              struct drarun_error *err);

/* The same for a rank that comes while others run. Of the sets of CPUs that ranks get in turn, it
 * gets the first of those to which the fewest are bound; numa: by the cores of each. Sets that name
 * a CPU that is not usable are left out, and an error only if there are no others. used: by CPU
 * (CPUS_MAX), how many are bound to it. *ret_shared: its set has a rank, numa: one for each core.
 */
int bind_free_cpus(const struct bind_policy *policy, const struct cpus *cpus, const uint32_t *used,
                   uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                   struct drarun_error *err);

/* Where the ranks of a worker run. */
struct bind_place {
    const char *machine;
    const char *cpus; /* the list of those that it may use there; "": the machine's */
};

/* The workers that have the same CPUs get the same number, from 1. Whether lists overlap in a part
 * is not looked at. -ENOMEM. */
int bind_number_cpus(const struct bind_place *places, uint32_t count, uint32_t *ret_numbers,
                     struct drarun_error *err);

#endif
