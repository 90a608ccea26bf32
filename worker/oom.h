/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel's OOM killer took a rank: it leaves no mark on the process, only a counter on
 * the cgroup. */
#ifndef DRARUN_WORKER_OOM_H
#define DRARUN_WORKER_OOM_H

#include <stdbool.h>
#include <stdint.h>

struct oom {
    int fd;            /* of the file with the counter; -1: unknown */
    uint64_t answered; /* kills before the start, and those told since */
};

void oom_init(struct oom *oom);
void oom_done(struct oom *oom);

/* True once for each kill in this cgroup since oom_init. Where the cgroup has no counter (the root
 * group) the machine's is read, where a kill elsewhere counts too. */
bool oom_take_kill(struct oom *oom);

#endif
