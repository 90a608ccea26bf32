/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/affinity.h"

#include <sched.h>

/* The kernel refuses a set that is smaller than the machine; no kernel is built for more. */
#define MOST_CPUS 8192

struct cpu_sets {
    cpu_set_t set[MOST_CPUS / CPU_SETSIZE];
};

uint32_t affinity_count(void)
{
    struct cpu_sets cpus;
    if (sched_getaffinity(0, sizeof cpus, cpus.set) < 0)
        return 0;
    return (uint32_t)CPU_COUNT_S(sizeof cpus, cpus.set);
}

void affinity_copy(pid_t from)
{
    struct cpu_sets cpus;
    if (sched_getaffinity(from, sizeof cpus, cpus.set) == 0)
        sched_setaffinity(0, sizeof cpus, cpus.set);
}
