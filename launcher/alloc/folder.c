/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/alloc/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/dir_entries.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define NAME "drarun-alloc"
#define OWNER_FILE "owner" /* locked by `drarun alloc`, and empty until it is */
#define JOB_FILE "job"     /* locked by the drarun whose ranks run */

static int open_at(int dir, const char *name, int flags)
{
    return openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* ---- its owner ---- */

static int own(int dir)
{
    cleanup_close int fd = open_at(dir, OWNER_FILE, O_WRONLY | O_CREAT | O_EXCL);
    /* a sweep may have it for a moment */
    if (fd < 0 || flock(fd, LOCK_EX) < 0 || fd_write_all(fd, "locked\n", 7) < 0)
        return -1;
    return take_fd(&fd);
}

static bool is_left(int dir)
{
    struct stat st;
    cleanup_close int fd = open_at(dir, OWNER_FILE, O_RDONLY | O_NONBLOCK);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
           S_ISREG(st.st_mode) && st.st_size > 0;
}

bool folder_is_left(const char *path)
{
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 && is_left(dir);
}

/* ---- making ---- */

static bool is_left_of_us(int list, const char *name)
{
    struct stat st;
    cleanup_close int dir = open_at(list, name, O_RDONLY | O_DIRECTORY);
    return dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid() && is_left(dir);
}

/* What killed allocations left beside path. */
static void sweep(const char *path)
{
    static const char begin[] = NAME "-";
    cleanup_free char *base = strdup(path);
    char *slash = base ? strrchr(base, '/') : NULL;
    if (!slash)
        return;
    *slash = '\0';
    cleanup_close int list = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dir_entries entries = {.fd = list};
    int rc = 0;
    if (list < 0)
        return;
    for (const char *name; (name = dir_entries_next(&entries, &rc));)
        if (strncmp(name, begin, strlen(begin)) == 0 && is_left_of_us(list, name))
            tree_remove(list, name);
}

int folder_make(char *ret_path, size_t size, int *ret_owner, struct drarun_error *err)
{
    int rc = dir_make_temporary(NAME, ret_path, size, err);
    if (rc < 0)
        return rc;
    cleanup_close int dir = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_owner = dir >= 0 ? own(dir) : -1;
    sweep(ret_path);
    return 0;
}

/* ---- its jobs ---- */

int folder_enter(const char *path, const char *others, int *ret_job, struct drarun_error *err)
{
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int fd = dir >= 0 ? open_at(dir, JOB_FILE, O_RDWR | O_CREAT) : -1;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return error_kind(err, DRARUN_ERR_CAPACITY, EBUSY,
                              "another drarun runs in this allocation (%s), whose jobs run one "
                              "after the other: wait for it, or %s",
                              path, others);
        close_fd(&fd);
    }
    *ret_job = take_fd(&fd);
    return 0;
}
