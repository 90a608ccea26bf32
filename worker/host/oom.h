/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel's OOM killer took a rank: it leaves no mark on the process, only a counter on
 * the cgroup. And how an agent survives that, where it may. */
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

#define OOM_SCORE_FILE "/proc/self/oom_score_adj"
#define OOM_SCORE_SIZE 8

/* Takes this process, and what it starts, out of the OOM killer's reach: version 2 can be told to
 * kill a whole cgroup (memory.oom.group), and the agent would not live to tell. Needs
 * CAP_SYS_RESOURCE; false without. before: what ranks are to have in OOM_SCORE_FILE. */
bool oom_exempt(char before[OOM_SCORE_SIZE]);

#endif
