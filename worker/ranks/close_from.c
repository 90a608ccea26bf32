/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/close_from.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

/* struct linux_dirent64, getdents64(2). */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* -1 for "." and "..". */
CHILD_CODE static int descriptor_of(const char *name)
{
    int fd = 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9')
            return -1;
        fd = fd * 10 + (*name - '0');
    }
    return fd;
}

CHILD_CODE static void mark(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0)
        fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* Marks instead of closing: the list must not change while it is read. */
CHILD_CODE static bool mark_listed(int first, int last)
{
    _Alignas(struct entry) char list[2048];
    int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return false;
    long n;
    while ((n = syscall(SYS_getdents64, dir, list, sizeof list)) > 0) {
        for (long at = 0; at < n;) {
            const struct entry *entry = (const struct entry *)(const void *)(list + at);
            int fd = descriptor_of(entry->name);
            if (fd >= first && fd <= last)
                mark(fd);
            at += entry->length;
        }
    }
    close(dir);
    return n == 0;
}

/* Without /proc: every number that can be open. The limit may have been lowered since, so it is a
 * floor only where it is small. */
CHILD_CODE static void mark_all(int first, int last)
{
    struct rlimit limit;
    int end = 65536;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)INT_MAX &&
        (int)limit.rlim_cur > end)
        end = (int)limit.rlim_cur;
    for (int fd = first; fd <= last && fd < end; fd++)
        mark(fd);
}

CHILD_CODE int close_between(int first, int last)
{
    if (first > last)
        return 0;
    /* ENOSYS before Linux 5.9, EPERM under seccomp filters that do not know it */
    if (syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0) < 0 &&
        !mark_listed(first, last))
        mark_all(first, last);
    return 0;
}

CHILD_CODE int close_from(int first)
{
    return close_between(first, INT_MAX);
}
