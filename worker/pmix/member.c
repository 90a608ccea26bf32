/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/member.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/proctree.h"

#define DEPTH_MAX 32 /* of wrappers around a program; what is deeper is found by the slow way */

struct search {
    char link[40];   /* what /proc/PID/fd/N of a holder says */
    pid_t holder;    /* -1: not found */
    bool unreadable; /* a process that was looked at shows no descriptors */
};

static bool holds(pid_t pid, void *arg)
{
    struct search *search = arg;
    char path[64], target[sizeof search->link + 1];
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    cleanup_dir DIR *dir = opendir(path);
    if (!dir) {
        search->unreadable |= errno == EACCES || errno == EPERM;
        return false;
    }
    while ((entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (n < 0) {
            search->unreadable |= errno == EACCES || errno == EPERM;
            continue;
        }
        target[n] = '\0';
        if (strcmp(target, search->link) != 0)
            continue;
        search->holder = pid;
        return true;
    }
    return false;
}

static bool search_below(pid_t pid, int depth, struct search *search);

/* proc(5), /proc/PID/task/TID/children, which not every kernel has and which may leave some out:
 * quick for a rank in a shell among hundreds of processes. */
static bool search_children(int tasks, const char *tid, int depth, struct search *search)
{
    char path[300];
    int child;
    snprintf(path, sizeof path, "%s/children", tid);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    cleanup_file FILE *children = fd < 0 ? NULL : fdopen(fd, "r");
    if (!children && fd >= 0)
        close(fd);
    while (children && fscanf(children, "%d", &child) == 1)
        if (search_below((pid_t)child, depth + 1, search))
            return true;
    return false;
}

static bool search_below(pid_t pid, int depth, struct search *search)
{
    char path[64];
    struct dirent *task;
    if (depth > DEPTH_MAX)
        return false;
    if (holds(pid, search))
        return true;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    cleanup_dir DIR *tasks = opendir(path);
    while (tasks && (task = readdir(tasks)))
        if (task->d_name[0] != '.' && search_children(dirfd(tasks), task->d_name, depth, search))
            return true;
    return false;
}

/* The rank in whose tree a process is, -1 for an orphan of the job. */
static pid_t rank_above(pid_t pid, bool (*is_rank)(pid_t pid, void *arg), void *arg)
{
    for (pid_t at = pid; at > 1 && at != getpid(); at = proctree_parent(at))
        if (is_rank(at, arg))
            return at;
    return -1;
}

enum membership member_of(pid_t rank, uint64_t inode, bool (*is_rank)(pid_t pid, void *arg),
                          void *arg)
{
    struct search search = {.holder = -1};
    snprintf(search.link, sizeof search.link, "socket:[%" PRIu64 "]", inode);
    if (rank > 0 && search_below(rank, 0, &search))
        return MEMBER_YES;
    bool unreadable = search.unreadable;
    search.unreadable = false;
    if (proctree_any(getpid(), holds, &search)) {
        pid_t above = is_rank ? rank_above(search.holder, is_rank, arg) : -1;
        return above < 0 || above == rank ? MEMBER_YES : MEMBER_NO;
    }
    return unreadable || (rank <= 0 && search.unreadable) ? MEMBER_UNKNOWN : MEMBER_NO;
}
