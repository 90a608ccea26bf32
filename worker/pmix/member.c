/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/member.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/proctree.h"
#include "worker/host/process_tree.h"

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

/* Quick for a rank in a shell among hundreds of processes; what it does not reach, such as a child
 * of another thread, is found by the slow way. */
static bool goes_on(pid_t pid, void *arg)
{
    return !holds(pid, arg);
}

/* The rank in whose tree a process is, -1 for an orphan of the job. */
static pid_t rank_above(pid_t pid, bool (*is_rank)(pid_t pid, void *arg), void *arg)
{
    for (pid_t at = pid; at > 1 && at != getpid(); at = proctree_parent(at))
        if (is_rank(at, arg))
            return at;
    return -1;
}

static void search_init(struct search *search, uint64_t inode)
{
    *search = (struct search){.holder = -1};
    snprintf(search->link, sizeof search->link, "socket:[%" PRIu64 "]", inode);
}

enum membership member_of(pid_t rank, uint64_t inode, bool (*is_rank)(pid_t pid, void *arg),
                          void *arg)
{
    struct search search;
    search_init(&search, inode);
    if (rank > 0)
        process_tree_walk(rank, goes_on, &search);
    if (search.holder > 0)
        return MEMBER_YES;
    bool unreadable = search.unreadable;
    search.unreadable = false;
    if (proctree_any(getpid(), holds, &search)) {
        pid_t above = is_rank ? rank_above(search.holder, is_rank, arg) : -1;
        return above < 0 || above == rank ? MEMBER_YES : MEMBER_NO;
    }
    return unreadable || (rank <= 0 && search.unreadable) ? MEMBER_UNKNOWN : MEMBER_NO;
}

/* Each of them: a program that has changed only some may not signal all that its user may. */
static bool has_our_user(pid_t pid)
{
    char text[2048];
    unsigned real, effective, saved;
    process_read(pid, "status", text, sizeof text);
    const char *line = strstr(text, "\nUid:");
    return line && sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) == 3 &&
           real == geteuid() && effective == real && saved == real;
}

static bool shares_namespace(pid_t pid, const char *name)
{
    char path[64], theirs[64] = "", ours[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
    ssize_t n = readlink(path, theirs, sizeof theirs - 1);
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    return n > 0 && readlink(path, ours, sizeof ours - 1) > 0 && strcmp(theirs, ours) == 0;
}

pid_t member_neighbour(uint64_t inode)
{
    struct search search;
    search_init(&search, inode);
    /* all that are to be seen descend from those whose parent is not */
    if (!proctree_any(0, holds, &search) || !has_our_user(search.holder) ||
        !shares_namespace(search.holder, "user") || !shares_namespace(search.holder, "pid"))
        return -1;
    return search.holder;
}
