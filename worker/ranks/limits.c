/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cgroup.h"
#include "lib/base/error.h"
#include "worker/tree/listen.h"

/* Beyond what ranks need: one for each, session files, and who has not proved the key yet. */
#define SPARE_PER_RANK 1u
#define SPARE (40u + LISTEN_GUESTS_MAX)

bool limits_raise_files(const struct room_files *files, size_t ranks, struct rlimit *ret_before)
{
    struct rlimit limit;
    rlim_t need = room_files_for(files, ranks) + ranks * SPARE_PER_RANK + SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need ||
        limit.rlim_cur >= limit.rlim_max)
        return false;
    struct rlimit raised = limit;
    raised.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
        return false;
    *ret_before = limit;
    return true;
}

int limits_file_error(int code, const struct room_files *files, size_t ranks,
                      struct drarun_error *err)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (code == EMFILE)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code,
                          "too many open files: the limit (ulimit -n) is %llu, %zu ranks need %llu",
                          (unsigned long long)limit.rlim_cur, ranks,
                          (unsigned long long)room_files_for(files, ranks));
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code, "open a pipe: %s", strerror(code));
}

static void format_limit(char *text, size_t size, rlim_t limit)
{
    if (limit == RLIM_INFINITY)
        snprintf(text, size, "unlimited");
    else
        snprintf(text, size, "%llu", (unsigned long long)limit);
}

int limits_process_error(int code, struct drarun_error *err)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    char user[32], group[32];
    if (code != EAGAIN)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code, "start a process: %s",
                          strerror(code));
    getrlimit(RLIMIT_NPROC, &limit);
    format_limit(user, sizeof user, limit.rlim_cur);
    if (cgroup_read_word("pids", "pids.max", group, sizeof group) < 0)
        snprintf(group, sizeof group, "unknown");
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code,
                      "too many processes: the user's limit (ulimit -u, RLIMIT_NPROC) is %s, the "
                      "cgroup's (pids.max) is %s; that of a cgroup above it is not seen from a "
                      "container (of a pod: the kubelet's podPidsLimit)",
                      user, group);
}
