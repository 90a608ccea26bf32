/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of this machine as the kernel shows them in sysfs, rooted at a directory so that
 * captured trees work; no hwloc, since the local job must start in milliseconds. */
#ifndef DRARUN_TOPO_CPUS_H
#define DRARUN_TOPO_CPUS_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define CPUS_MAX 8192u

struct cpu {
    uint32_t id;   /* the kernel's number */
    uint32_t core; /* from 0 in the order of the list; the same for the threads of one core */
    uint32_t numa; /* node number; 0 where the kernel shows none */
};

struct cpus {
    struct cpu *list; /* usable ones, by NUMA node, core, id */
    size_t count;
    size_t cores;
};

/* rootfd: a directory that holds sys/devices/system/cpu and node; -1 means "/".
 * allowed: the caller's affinity mask (size bytes), NULL for all online ones. A missing topology or
 * NUMA file means a core of its own or node 0; where /sys is missing, all of the mask are online. A
 * malformed file is an error that names it. Cores are told by thread_siblings_list, since core ids
 * repeat between dies and clusters of a package. */
int cpus_read(int rootfd, const cpu_set_t *allowed, size_t size, struct cpus *ret_cpus,
              struct drarun_error *err);
void cpus_done(struct cpus *cpus);

/* "0-3,8": parses a kernel CPU list (Documentation/admin-guide/cputopology) into ids, ascending and
 * unique; -EINVAL names the offending part. One final newline is accepted, and an empty list, which
 * the kernel shows for a node without CPUs. The ids are malloc'ed, NULL when there are none. */
int cpulist_parse(const char *text, uint32_t **ret_ids, size_t *ret_count,
                  struct drarun_error *err);
/* The ids of an affinity mask (size bytes), as cpulist_parse gives them. -ENOMEM. */
int cpulist_of_mask(const cpu_set_t *mask, size_t size, uint32_t **ret_ids, size_t *ret_count,
                    struct drarun_error *err);
/* The CPUs that a process may use (0: the calling one), as a list; nothing when the kernel does not
 * tell. -ENOMEM. */
int cpulist_of_process(pid_t pid, struct buf *out);
/* ids ascending. */
void cpulist_format(const uint32_t *ids, size_t count, struct buf *out);

#endif
