/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/sigpipe.h"

#define TEMPORARY ".XXXXXX"
#define PIECE ((size_t)8 << 10)
#define READER_MS 10000 /* the longest that a reader of a pipe may not read */

int fd_read_all(int fd, const char *path, size_t limit, struct buf *out, struct drarun_error *err)
{
    size_t start = out->len;
    for (;;) {
        if (!buf_reserve(out, 4096))
            return error_set(err, ENOMEM, "read %s: out of memory", path);
        ssize_t n = read(fd, out->data + out->len, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, errno, "read %s: %s", path, strerror(errno));
        out->data[out->len + (size_t)n] = '\0';
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        if (out->len - start > limit)
            return error_set(err, EFBIG, "read %s: larger than %zu bytes", path, limit);
    }
}

static int read_opened(int fd, const char *path, size_t limit, struct buf *out,
                       struct drarun_error *err)
{
    return fd < 0 ? error_set(err, errno, "open %s: %s", path, strerror(errno))
                  : fd_read_all(fd, path, limit, out, err);
}

int file_read(int dirfd, const char *path, size_t limit, struct buf *out, struct drarun_error *err)
{
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return read_opened(fd, path, limit, out, err);
}

int file_read_named(const char *path, size_t limit, struct buf *out, struct drarun_error *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return read_opened(fd, path, limit, out, err);
}

int file_open_regular(int dirfd, const char *path, int flags)
{
    struct stat st;
    cleanup_close int fd =
        openat(dirfd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? take_fd(&fd) : -ENXIO;
}

const char *file_open_regular_why(int code)
{
    return code == ELOOP   ? "it is a symbolic link; remove it"
           : code == ENXIO ? "it is not a regular file; remove it"
                           : strerror(code);
}

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int fd_of_data(const char *name, const void *data, size_t len)
{
    cleanup_close int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fd_write_all(fd, data, len);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = -errno;
    return rc < 0 ? rc : take_fd(&fd);
}

static int sync_directory_of(const char *path)
{
    char dir[PATH_MAX];
    if (strlen(path) >= sizeof dir)
        return -ENAMETOOLONG;
    strcpy(dir, path); // NOLINT: the length was checked
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';
    cleanup_close int fd =
        open(slash ? (dir[0] ? dir : "/") : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return -errno;
    return 0;
}

/* A temporary file beside path; its descriptor. */
static int open_beside(const char *path, char ret_temp[PATH_MAX], struct drarun_error *err)
{
    if (snprintf(ret_temp, PATH_MAX, "%s" TEMPORARY, path) >= PATH_MAX)
        return error_set(err, ENAMETOOLONG, "write %s: path too long", path);
    int fd = mkostemp(ret_temp, O_CLOEXEC);
    return fd >= 0 ? fd : error_set(err, errno, "write %s: %s", path, strerror(errno));
}

/* Puts the temporary file in the place of path; after rc < 0, of its writing, removes it. */
static int put_in_place(int fd, const char *temp, const char *path, unsigned mode,
                        enum file_after after, int rc, struct drarun_error *err)
{
    if (rc == 0 && (fchmod(fd, mode) < 0 || (after != FILE_AFTER_ANYTHING && fsync(fd) < 0) ||
                    rename(temp, path) < 0))
        rc = -errno;
    if (rc == 0 && after == FILE_AFTER_NEW)
        rc = sync_directory_of(path);
    if (rc < 0) {
        unlink(temp);
        return error_set(err, -rc, "write %s: %s", path, strerror(-rc));
    }
    return 0;
}

int file_replace(const char *path, const void *data, size_t len, unsigned mode,
                 enum file_after after, struct drarun_error *err)
{
    char temp[PATH_MAX];
    cleanup_close int fd = open_beside(path, temp, err);
    if (fd < 0)
        return fd;
    return put_in_place(fd, temp, path, mode, after, fd_write_all(fd, data, len), err);
}

int file_write_atomic(const char *path, const void *data, size_t len, unsigned mode,
                      struct drarun_error *err)
{
    return file_replace(path, data, len, mode, FILE_AFTER_NEW, err);
}

bool file_is_plain(const char *path)
{
    struct stat st;
    if (strncmp(path, "/proc/", 6) == 0 ||
        (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0))
        return false;
    if (stat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return true;
    return S_ISFIFO(st.st_mode) && st.st_uid != geteuid(); /* somebody has put it in our way */
}

/* As fd_write_all, but who reads must go on reading. */
static int write_to_reader(int fd, const char *p, size_t len)
{
    while (len > 0) {
        struct pollfd writable = {.fd = fd, .events = POLLOUT};
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EAGAIN && poll(&writable, 1, READER_MS) == 0)
            return -ETIMEDOUT;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        p += n < 0 ? 0 : n;
        len -= n < 0 ? 0 : (size_t)n;
    }
    return 0;
}

static int write_as_is(const char *path, const void *data, size_t len, struct drarun_error *err)
{
    cleanup_close int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 ? -errno : write_to_reader(fd, data, len);
    struct stat st;
    bool unread = rc == -ENXIO && stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    const char *why = unread             ? "nobody reads it"
                      : rc == -EPIPE     ? "nobody reads it any more"
                      : rc == -ETIMEDOUT ? "who has opened it does not read"
                                         : strerror(-rc);
    return rc < 0 ? error_set(err, -rc, "write %s: %s", path, why) : 0;
}

int file_write_named(const char *path, const void *data, size_t len, struct drarun_error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old_xfsz, old_pipe;
    mode_t mask = umask(0);
    umask(mask);
    /* at ulimit -f, and when a pipe's reader goes, a write then fails, and says so */
    sigaction(SIGXFSZ, &ignore, &old_xfsz);
    sigpipe_ignore(&old_pipe);
    int rc = file_is_plain(path) ? file_write_atomic(path, data, len, 0666 & ~mask, err)
                                 : write_as_is(path, data, len, err);
    sigaction(SIGXFSZ, &old_xfsz, NULL);
    sigpipe_restore(&old_pipe);
    return rc;
}

/* Short at the end of the file alone. */
static ssize_t read_piece(int fd, char piece[PIECE])
{
    size_t length = 0;
    ssize_t n = 1;
    while (length < PIECE && n != 0) {
        n = read(fd, piece + length, PIECE - length);
        if (n < 0 && errno != EINTR)
            return -errno;
        length += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)length;
}

bool file_same(const char *path, const char *other)
{
    char pieces[2][PIECE];
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    cleanup_close int other_fd = open(other, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || other_fd < 0)
        return false;
    for (;;) {
        ssize_t n = read_piece(fd, pieces[0]);
        if (n < 0 || read_piece(other_fd, pieces[1]) != n ||
            memcmp(pieces[0], pieces[1], (size_t)n) != 0)
            return false;
        if (n == 0)
            return true;
    }
}

int file_copy(const char *from, const char *path, unsigned mode, struct drarun_error *err)
{
    char temp[PATH_MAX], piece[PIECE];
    cleanup_close int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (source < 0)
        return error_set(err, errno, "open %s: %s", from, strerror(errno));
    cleanup_close int fd = open_beside(path, temp, err);
    if (fd < 0)
        return fd;
    ssize_t n = 0;
    int rc = 0;
    while (rc == 0 && (n = read_piece(source, piece)) > 0)
        rc = fd_write_all(fd, piece, (size_t)n);
    if (rc == 0 && n < 0) {
        unlink(temp);
        return error_set(err, (int)-n, "read %s: %s", from, strerror((int)-n));
    }
    return put_in_place(fd, temp, path, mode, FILE_AFTER_NEW, rc, err);
}

int file_remove_atomic(const char *path, struct drarun_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path + 1) : 1,
             slash ? path : ".");
    cleanup_dir DIR *dir = opendir(parent);
    const struct dirent *entry;
    if (!dir)
        return errno == ENOENT ? 0 : error_set(err, errno, "%s: %s", parent, strerror(errno));
    while ((entry = readdir(dir))) {
        const char *rest = entry->d_name + length;
        if (strncmp(entry->d_name, name, length) != 0 ||
            (*rest && (*rest != '.' || strlen(rest) != sizeof TEMPORARY - 1)))
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
            return error_set(err, errno, "remove %s%s: %s", parent, entry->d_name, strerror(errno));
    }
    return 0;
}

static int add_flag(int fd, int get, int set, int flag)
{
    int flags = fcntl(fd, get);
    if (flags < 0 || fcntl(fd, set, flags | flag) < 0)
        return -errno;
    return 0;
}

int fd_set_nonblock(int fd)
{
    return add_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK);
}

int fd_set_cloexec(int fd)
{
    return add_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC);
}

/* Each directory whose name a slash ends. */
static int make_up_to_slashes(char *path, unsigned mode, struct drarun_error *err)
{
    for (char *slash = strchr(path + (*path == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, mode) < 0 && errno != EEXIST)
            return error_set(err, errno, "make %s: %s", path, strerror(errno));
        *slash = '/';
    }
    return 0;
}

int dirs_make_parents(const char *path, unsigned mode, struct drarun_error *err)
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return error_set(err, ENAMETOOLONG, "%s: the path is too long", path);
    return make_up_to_slashes(copy, mode, err);
}

int dir_make_temporary(const char *name, char *ret_path, size_t size, struct drarun_error *err)
{
    const char *base = getenv("TMPDIR");
    if (!base || base[0] != '/')
        base = "/tmp";
    int length = snprintf(ret_path, size, "%s/%s-XXXXXX", base, name);
    int rc = length < 0 || (size_t)length >= size ? ENAMETOOLONG : mkdtemp(ret_path) ? 0 : errno;
    if (rc == 0)
        return 0;
    ret_path[0] = '\0';
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, rc, "cannot make a directory in %s: %s", base,
                      strerror(rc));
}

int dirs_make(const char *path, unsigned mode, struct drarun_error *err)
{
    int rc = dirs_make_parents(path, mode, err);
    if (rc == 0 && mkdir(path, mode) < 0 && errno != EEXIST)
        rc = error_set(err, errno, "make %s: %s", path, strerror(errno));
    return rc;
}

int dir_check_own(const char *path, struct drarun_error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(err, EPERM, "%s: expected a directory that is not a link: remove it",
                         path);
    if (st.st_uid != geteuid())
        return error_set(err, EPERM, "%s: belongs to user %u, expected user %u: chown or remove it",
                         path, st.st_uid, geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, EPERM, "%s: others may write it (mode %o): chmod go-w, or remove it",
                         path, st.st_mode & 07777u);
    return 0;
}
