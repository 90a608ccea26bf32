/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define LINKS_MAX 40 /* as the kernel's */

struct walk {
    const char *path;    /* as asked, for messages */
    char rest[PATH_MAX]; /* still to go, without a slash in front */
    char at[PATH_MAX];   /* where fd is: "/var" */
    int fd;
    struct stat st; /* of fd */
    unsigned links;
};

static bool is_ours(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

static bool others_write(const struct stat *st)
{
    return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0);
}

static int enter(struct walk *w, int fd_take, const char *at, struct drarun_error *err)
{
    cleanup_close int fd = fd_take;
    if (fd < 0 || fstat(fd, &w->st) < 0)
        return error_set(err, errno, "%s: %s", at, strerror(errno));
    if (!S_ISDIR(w->st.st_mode))
        return error_set(err, ENOTDIR, "%s: expected a directory", at);
    if (!is_ours(&w->st))
        return error_set(
            err, EPERM, "%s: %s belongs to user %u, who could put anything there: chown it to root",
            w->path, at, w->st.st_uid);
    memmove(w->at, at, strlen(at) + 1);
    close_fd(&w->fd);
    w->fd = take_fd(&fd);
    return 0;
}

static int begin(struct walk *w, struct drarun_error *err)
{
    return enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), "/", err);
}

/* next: what stands under the directory's name that is walked to; NULL: it is the last. */
static int check_others(const struct walk *w, const struct stat *next, struct drarun_error *err)
{
    if (!others_write(&w->st) || (next && w->st.st_mode & S_ISVTX && is_ours(next)))
        return 0;
    return error_set(err, EPERM,
                     "%s: others may write %s (mode %o): chmod go-w, or take another place",
                     w->path, w->at, w->st.st_mode & 07777u);
}

/* Goes on at where the link leads. */
static int follow(struct walk *w, int fd, struct drarun_error *err)
{
    char target[PATH_MAX], rest[PATH_MAX];
    ssize_t length = readlinkat(fd, "", target, sizeof target - 1);
    if (length < 0)
        return error_set(err, errno, "%s: %s", w->path, strerror(errno));
    target[length] = '\0';
    if (++w->links > LINKS_MAX)
        return error_set(err, ELOOP, "%s: %s", w->path, strerror(ELOOP));
    if (snprintf(rest, sizeof rest, "%s/%s", target, w->rest) >= (int)sizeof rest)
        return error_set(err, ENAMETOOLONG, "%s: %s", w->path, strerror(ENAMETOOLONG));
    memcpy(w->rest, rest, sizeof rest);
    return *target == '/' ? begin(w, err) : 0;
}

/* Takes the first name of the rest. False: there is none. */
static bool next_name(struct walk *w, char name[NAME_MAX + 1])
{
    const char *start = w->rest + strspn(w->rest, "/");
    size_t length = strcspn(start, "/");
    snprintf(name, NAME_MAX + 1, "%.*s", (int)length, start);
    memmove(w->rest, start + length, strlen(start + length) + 1);
    return length > 0;
}

/* *ret_end: nothing more is there. */
static int step(struct walk *w, const char *name, bool *ret_end, struct drarun_error *err)
{
    char at[PATH_MAX];
    struct stat st;
    if (strcmp(name, ".") == 0)
        return 0;
    if (snprintf(at, sizeof at, "%s/%s", w->at[1] ? w->at : "", name) >= (int)sizeof at)
        return error_set(err, ENAMETOOLONG, "%s: %s", w->path, strerror(ENAMETOOLONG));
    cleanup_close int fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        *ret_end = true;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, errno, "%s: %s", at, strerror(errno));
    int rc = check_others(w, &st, err);
    if (rc < 0)
        return rc;
    return S_ISLNK(st.st_mode) ? follow(w, fd, err) : enter(w, take_fd(&fd), at, err);
}

int dir_check_trusted(const char *path, struct drarun_error *err)
{
    struct walk w = {.path = path, .fd = -1};
    char name[NAME_MAX + 1];
    bool end = false;
    if (*path != '/' || snprintf(w.rest, sizeof w.rest, "%s", path) >= (int)sizeof w.rest)
        return error_set(err, EINVAL, "%s: expected an absolute path", path);
    int rc = begin(&w, err);
    while (rc == 0 && !end && next_name(&w, name))
        rc = step(&w, name, &end, err);
    bool may_make = end && w.st.st_mode & S_ISVTX;
    if (rc == 0 && !may_make)
        rc = check_others(&w, NULL, err);
    close_fd(&w.fd);
    return rc;
}

int dir_make_trusted(const char *path, unsigned mode, struct drarun_error *err)
{
    int rc = dir_check_trusted(path, err);
    if (rc == 0)
        rc = dirs_make(path, mode, err);
    return rc < 0 ? rc : dir_check_trusted(path, err);
}
