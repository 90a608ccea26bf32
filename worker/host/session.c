/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/dir_entries.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

/* libpmix and MPI libraries put sockets below the session directory: sun_path has 108 bytes. */
#define LENGTH_MAX 70u
#define NAME_USUAL 30u

/* The i-th place to try for a name of that length; NULL after the last, "" for one that is none. */
static const char *place(size_t i, size_t length)
{
    static const char *const fixed[] = {"/tmp", "/dev/shm", "/run"};
    const char *own = getenv("TMPDIR");
    if (i > 0)
        return i - 1 < ARRAY_LEN(fixed) ? fixed[i - 1] : NULL;
    return own && own[0] == '/' && strlen(own) + 1 + length <= LENGTH_MAX ? own : "";
}

const char *session_base(void)
{
    const char *base;
    for (size_t i = 0; (base = place(i, NAME_USUAL)) != NULL; i++)
        if (base[0] && faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) == 0)
            return base;
    return NULL;
}

/* mkdir follows no link at its last component and fails on whatever is there, so the directory is
 * ours; a umask can only take bits away. */
static int make(const char *path)
{
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

static int make_somewhere(const char *name, char **ret_path, struct drarun_error *err)
{
    struct buf tried = BUF_INIT;
    const char *base;
    int rc = -ENOENT;
    for (size_t i = 0; (base = place(i, strlen(name))) != NULL; i++) {
        cleanup_free char *path = NULL;
        if (!base[0])
            continue;
        if (asprintf(&path, "%s/%s", base, name) < 0) {
            path = NULL;
            rc = -ENOMEM;
            break;
        }
        rc = make(path);
        if (rc == 0) {
            *ret_path = TAKE_PTR(path);
            buf_done(&tried);
            return 0;
        }
        buf_printf(&tried, "%s%s: %s", tried.len ? ", " : "", base, strerror(-rc));
    }
    error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc,
               "no place for the session directory (%s): mount an emptyDir at /tmp, or set TMPDIR "
               "to a directory that the container's user may write",
               tried.data ? tried.data : "out of memory");
    buf_done(&tried);
    return rc;
}

#define REMOVE_TRIES 4 /* where descriptors or memory are short for a moment */
#define REMOVE_PAUSE_US 10000

int session_make(const char *name, char **ret_path, struct drarun_error *err)
{
    if (name[0] != '/')
        return make_somewhere(name, ret_path, err);
    cleanup_free char *path = strdup(name);
    int rc = path ? make(path) : -ENOMEM;
    bool full = rc == -ENOSPC || rc == -EDQUOT;
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc,
                          "make the session directory %s: %s%s", name, strerror(-rc),
                          full ? ": make room there, or set TMPDIR to another directory, whose "
                                 "path has at most 40 characters"
                               : "");
    *ret_path = TAKE_PTR(path);
    return 0;
}

int session_remove(const char *path)
{
    int rc = tree_remove(AT_FDCWD, path);
    for (int i = 1; i < REMOVE_TRIES && (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM); i++) {
        usleep(REMOVE_PAUSE_US);
        rc = tree_remove(AT_FDCWD, path);
    }
    return rc;
}

/* ---- what killed agents left ---- */

#define MARK "owner" /* locked by its owner; holds the path of the session directory */

int session_mark(const char *shm_dir, const char *session_dir)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" MARK, shm_dir) >= (int)sizeof path)
        return -1;
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* locked before it is written: a sweep passes over an empty one */
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
        fd_write_all(fd, session_dir, strlen(session_dir)) < 0)
        return -1;
    return take_fd(&fd);
}

/* dir is that name's. Its session directory, if its owner is gone. */
static bool is_left(int dir, const char *name, char session[PATH_MAX])
{
    struct stat st;
    cleanup_close int fd = openat(dir, MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        flock(fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    ssize_t length = pread(fd, session, PATH_MAX - 1, 0);
    if (length <= 0)
        return false;
    session[length] = '\0';
    const char *slash = strrchr(session, '/');
    return session[0] == '/' && strcmp(slash + 1, name) == 0;
}

static void sweep_one(int shm, const char *name)
{
    struct stat st;
    char session[PATH_MAX];
    cleanup_close int dir = openat(shm, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid() || !is_left(dir, name, session))
        return;
    if (lstat(session, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        tree_remove(AT_FDCWD, session);
    tree_remove(shm, name);
}

void session_sweep(const char *shm)
{
    static const char begin[] = "drarun-"; /* identity_session_dir */
    cleanup_close int list = open(shm, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dir_entries entries = {.fd = list};
    int rc = 0;
    if (list < 0)
        return;
    for (const char *name; (name = dir_entries_next(&entries, &rc));)
        if (strncmp(name, begin, strlen(begin)) == 0)
            sweep_one(list, name);
}
