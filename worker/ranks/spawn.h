/* SPDX-License-Identifier: Apache-2.0 */
/* One process: started as vfork and execve do, so at the same cost whatever the agent's size. The
 * child gets a process group of its own and no terminal of the agent's, SIGKILL when the agent's
 * thread that started it ends, default signal dispositions, an empty mask, and no descriptor but
 * 0, 1, 2 and one more. */
#ifndef DRARUN_WORKER_SPAWN_H
#define DRARUN_WORKER_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "drarun/error.h"

struct spawn {
    const char *path; /* for execve, as exec_path_find gave it; relative to dir */
    char *const *argv;
    char *const *env;
    int dir;              /* to start in, or AT_FDCWD */
    const uint32_t *cpus; /* to bind to; none: unchanged */
    size_t cpu_count;
    int stdio[3];
    int keep;  /* inherited under this number (above 2), or -1 */
    bool stop; /* before its first instruction: stopped as by SIGSTOP, for a debugger */
    const struct rlimit *nofile; /* RLIMIT_NOFILE to set, or NULL */
    const char *oom_score;       /* for OOM_SCORE_FILE (oom.h), or NULL */
    /* bit n-1: signal n is ignored or handled here; NULL: it is not known, so each is reset */
    const uint64_t *signals_to_reset;
};

/* Asking once saves sixty system calls in each process. */
uint64_t spawn_signals_to_reset(void);

/* Call it always from one thread that lives as long as the processes shall: PR_SET_PDEATHSIG goes
 * by the thread. Kinds as in worker/ranks/ranks.h. */
int spawn_process(const struct spawn *spawn, pid_t *ret_pid, struct drarun_error *err);

#endif
