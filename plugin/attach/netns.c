/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/netns.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define OWN "/proc/thread-self/ns/net"
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK) /* a FIFO in its place must not block */

int netns_own(int *ret_ns, struct drarun_error *err)
{
    int fd = open(OWN, OPEN_FLAGS);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", OWN, strerror(errno));
    *ret_ns = fd;
    return 0;
}

int netns_of(pid_t pid, int *ret_ns, struct drarun_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    int fd = open(path, OPEN_FLAGS);
    if (fd < 0)
        return error_set(err, errno, "the container's process %d: %s: %s", (int)pid, path,
                         strerror(errno));
    *ret_ns = fd;
    return 0;
}

bool netns_same(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

int netns_enter(int ns, int *ret_back, struct drarun_error *err)
{
    cleanup_close int back = -1;
    if (ns >= 0) {
        int rc = netns_own(&back, err);
        if (rc < 0)
            return rc;
        if (setns(ns, CLONE_NEWNET) < 0)
            return error_set(err, errno, "enter the network namespace: %s", strerror(errno));
    }
    *ret_back = take_fd(&back);
    return 0;
}

void netns_leave(int back)
{
    if (back < 0)
        return;
    if (setns(back, CLONE_NEWNET) < 0) {
        static const char text[] = "drarun-attach: cannot leave a network namespace\n";
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        _exit(1);
    }
    close(back);
}

struct seen {
    ino_t *list;
    size_t count, cap;
};

static void seen_done(struct seen *seen)
{
    free(seen->list);
}

/* Remembers it; false when it was there already. */
static int seen_add(struct seen *seen, ino_t inode, struct drarun_error *err)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->list[i] == inode)
            return 0;
    ino_t *list = array_room(seen->list, seen->count, &seen->cap, sizeof *list);
    if (!list)
        return error_set(err, ENOMEM, "network namespaces: out of memory");
    seen->list = list;
    seen->list[seen->count++] = inode;
    return 1;
}

/* What is not a namespace is left out: /run/netns has empty files where one was unmounted. */
static int look_at(int dir, const char *path, struct seen *seen, netns_fn fn, void *arg,
                   struct drarun_error *err)
{
    struct stat st;
    struct statfs fs;
    cleanup_close int fd = openat(dir, path, OPEN_FLAGS);
    if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC)
        return 0;
    int rc = seen_add(seen, st.st_ino, err);
    return rc > 0 ? fn(fd, arg, err) : rc;
}

static int look_in(const char *folder, bool processes, struct seen *seen, netns_fn fn, void *arg,
                   struct drarun_error *err)
{
    char path[300];
    const struct dirent *entry = NULL;
    cleanup_dir DIR *dir = opendir(folder);
    int rc = 0;
    while (rc == 0 && dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || (processes && !isdigit((unsigned char)entry->d_name[0])))
            continue;
        snprintf(path, sizeof path, "%s%s", entry->d_name, processes ? "/ns/net" : "");
        rc = look_at(dirfd(dir), path, seen, fn, arg, err);
    }
    return rc;
}

int netns_each_other(netns_fn fn, void *arg, struct drarun_error *err)
{
    struct stat own;
    CLEANUP(seen_done) struct seen seen = {0};
    if (stat(OWN, &own) < 0)
        return error_set(err, errno, "%s: %s", OWN, strerror(errno));
    int rc = seen_add(&seen, own.st_ino, err);
    rc = rc < 0 ? rc : look_in("/proc", true, &seen, fn, arg, err);
    rc = rc ? rc : look_in("/run/netns", false, &seen, fn, arg, err);
    return rc ? rc : look_in("/var/run/netns", false, &seen, fn, arg, err);
}
