/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent that serves job after job takes over from each launcher: started by it, it would
 * have inherited that. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/cpus.h"
#include "worker/agent/private.h"

static rlim_t least(uint64_t a, rlim_t b)
{
    return a < b ? (rlim_t)a : b;
}

static const char *const limit_names[RLIM_NLIMITS] = {
    [RLIMIT_CPU] = "RLIMIT_CPU",           [RLIMIT_FSIZE] = "RLIMIT_FSIZE",
    [RLIMIT_DATA] = "RLIMIT_DATA",         [RLIMIT_STACK] = "RLIMIT_STACK",
    [RLIMIT_CORE] = "RLIMIT_CORE",         [RLIMIT_RSS] = "RLIMIT_RSS",
    [RLIMIT_NPROC] = "RLIMIT_NPROC",       [RLIMIT_NOFILE] = "RLIMIT_NOFILE",
    [RLIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",   [RLIMIT_AS] = "RLIMIT_AS",
    [RLIMIT_LOCKS] = "RLIMIT_LOCKS",       [RLIMIT_SIGPENDING] = "RLIMIT_SIGPENDING",
    [RLIMIT_MSGQUEUE] = "RLIMIT_MSGQUEUE", [RLIMIT_NICE] = "RLIMIT_NICE",
    [RLIMIT_RTPRIO] = "RLIMIT_RTPRIO",     [RLIMIT_RTTIME] = "RLIMIT_RTTIME",
};

/* No more than this process may have itself. */
static int take_limits(const Drarun__Wire__Shell *shell, struct drarun_error *err)
{
    for (unsigned int i = 0; i < RLIM_NLIMITS && i < shell->n_soft && i < shell->n_hard; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) < 0)
            continue;
        limit.rlim_max = least(shell->hard[i], limit.rlim_max);
        limit.rlim_cur = least(shell->soft[i], limit.rlim_max);
        if (setrlimit((__rlimit_resource_t)i, &limit) < 0)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno,
                              "set the limit %s of the shell that runs drarun: %s; drarun "
                              "--workers K starts agents for this job alone",
                              limit_names[i], strerror(errno));
    }
    return 0;
}

/* Of this thread, which starts the ranks. Where the kernel refuses, a cpuset has changed. */
static int take_cpus(const char *list, struct drarun_error *err)
{
    cpu_set_t set[CPUS_MAX / CPU_SETSIZE] = {0};
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    int rc = cpulist_parse(list, &ids, &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        CPU_SET_S(ids[i], sizeof set, set);
    if (rc == 0 && count > 0)
        sched_setaffinity(0, sizeof set, set);
    return rc;
}

int agent_take_shell(const Drarun__Wire__Shell *shell, struct drarun_error *err)
{
    umask((mode_t)(shell->umask & 0777));
    int rc = take_limits(shell, err);
    return rc < 0 ? rc : take_cpus(shell->cpus, err);
}
