/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define LINKS_MAX 40u

/* ---- links ---- */

/* What is done and what is to do; both are bounded by PATH_MAX. */
struct walk {
    char done[PATH_MAX]; /* without links; "" is the root */
    char rest[PATH_MAX];
    unsigned links;
};

static void drop_last(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = '\0';
}

static bool append(char *path, const char *name, size_t len)
{
    size_t old = strlen(path);
    if (old + len + 2 > PATH_MAX)
        return false;
    if (old > 0)
        path[old++] = '/';
    memcpy(path + old, name, len);
    path[old + len] = '\0';
    return true;
}

/* done ends in a link: takes it off and puts its target before the rest. */
static int follow(int root, struct walk *walk)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(root, walk->done, target, sizeof target - 1);
    if (len < 0)
        return errno == EINVAL ? 0 : -errno; /* EINVAL: it is no link */
    if (++walk->links > LINKS_MAX)
        return -ELOOP;
    size_t left = strlen(walk->rest) + 1;
    if ((size_t)len + 1 + left > sizeof walk->rest)
        return -ENAMETOOLONG;
    memmove(walk->rest + len + 1, walk->rest, left);
    memcpy(walk->rest, target, (size_t)len);
    walk->rest[len] = '/';
    if (target[0] == '/')
        walk->done[0] = '\0';
    else
        drop_last(walk->done);
    return 0;
}

/* Takes one component off the rest; 1 when there was none. */
static int step(int root, struct walk *walk)
{
    char *start = walk->rest + strspn(walk->rest, "/");
    size_t len = strcspn(start, "/");
    if (len == 0)
        return 1;
    bool dot = len == 1 && start[0] == '.', up = len == 2 && memcmp(start, "..", 2) == 0;
    if (up)
        drop_last(walk->done);
    else if (!dot && !append(walk->done, start, len))
        return -ENAMETOOLONG;
    memmove(walk->rest, start + len, strlen(start + len) + 1);
    return dot || up ? 0 : follow(root, walk);
}

static int walk_path(int root, const char *path, struct walk *walk)
{
    size_t len = strlen(path);
    if (len >= sizeof walk->rest)
        return -ENAMETOOLONG;
    memcpy(walk->rest, path, len + 1);
    walk->done[0] = '\0';
    walk->links = 0;
    int rc;
    while ((rc = step(root, walk)) == 0)
        ;
    return rc < 0 ? rc : 0;
}

/* One call instead of one for each component: openat2(2) with RESOLVE_IN_ROOT, of Linux 5.6. Where
 * it is missing, forbidden (seccomp) or was disturbed, -ENOSYS: the walk does the same. */
static int open_at_once(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root, path[0] ? path : ".", &how, sizeof how);
    if (fd >= 0)
        return (int)fd;
    bool other = errno == EPERM || errno == EAGAIN || errno == EINVAL || errno == E2BIG;
    return other ? -ENOSYS : -errno;
}

static ssize_t name_of(int fd, char name[PATH_MAX])
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, name, PATH_MAX - 1);
    if (len > 0)
        name[len] = '\0';
    return len;
}

/* What path names, relative to the root, as the kernel tells it by descriptors: into walk->done.
 * -ENOSYS where it does not. */
static int ask_kernel(int root, const char *path, struct walk *walk)
{
    cleanup_close int fd = open_at_once(root, path, O_PATH);
    if (fd < 0)
        return fd;
    ssize_t len = name_of(root, walk->rest);
    if (len <= 0 || name_of(fd, walk->done) <= 0)
        return -ENOSYS;
    size_t above = len == 1 ? 0 : (size_t)len; /* "/" */
    if (strncmp(walk->done, walk->rest, above) != 0 ||
        (walk->done[above] != '/' && walk->done[above] != '\0'))
        return -ENOSYS; /* moved meanwhile */
    char *name = walk->done + above + (walk->done[above] == '/');
    memmove(walk->done, name, strlen(name) + 1);
    return 0;
}

int root_resolve(int root, const char *path, struct buf *ret_path, struct drarun_error *err)
{
    struct walk walk;
    int rc = ask_kernel(root, path, &walk);
    if (rc < 0 && (rc != -ENOENT || strlen(path) > NAME_MAX)) /* which limit, the walk says */
        rc = walk_path(root, path, &walk);
    if (rc < 0)
        return error_set(err, -rc, "%s: %s", path, strerror(-rc));
    buf_reset(ret_path);
    buf_add_str(ret_path, walk.done[0] ? walk.done : ".");
    return ret_path->failed ? error_set(err, ENOMEM, "%s: out of memory", path) : 0;
}

static int open_in(int root, const char *path, int flags)
{
    struct walk walk;
    int fd = open_at_once(root, path, flags);
    if (fd != -ENOSYS)
        return fd;
    int rc = walk_path(root, path, &walk);
    if (rc < 0)
        return rc;
    fd = openat(root, walk.done[0] ? walk.done : ".", flags | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int root_open(int root, const char *path, int flags, struct drarun_error *err)
{
    int fd = open_in(root, path, flags);
    return fd < 0 ? error_set(err, -fd, "open %s: %s", path, strerror(-fd)) : fd;
}

/* ---- files and directories ---- */

/* A pipe or a device in a captured tree would block or act. */
static int check_regular(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

static int read_text(int fd, char *text, size_t size)
{
    size_t len = 0;
    int rc = check_regular(fd);
    if (rc < 0)
        return rc;
    while (len + 1 < size) {
        ssize_t n = read(fd, text + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        size_t asked = size - 1 - len;
        len += (size_t)n;
        if ((size_t)n < asked) /* of an attribute: its end */
            break;
    }
    text[len] = '\0';
    len = strlen(text);
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    return (int)len;
}

int attr_read(int dir, const char *name, char *ret_text, size_t size)
{
    cleanup_close int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : read_text(fd, ret_text, size);
}

int root_read(int root, const char *path, char *ret_text, size_t size)
{
    cleanup_close int fd = open_in(root, path, O_RDONLY | O_NONBLOCK);
    return fd < 0 ? fd : read_text(fd, ret_text, size);
}

int root_read_whole(int root, const char *path, size_t limit, struct buf *ret_text)
{
    cleanup_close int fd = open_in(root, path, O_RDONLY | O_NONBLOCK);
    int rc = fd < 0 ? fd : check_regular(fd);
    return rc < 0 ? rc : fd_read_all(fd, path, limit, ret_text, NULL);
}

static int by_number(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

int root_list(int root, const char *path, size_t max, struct strlist *ret_names,
              struct drarun_error *err)
{
    cleanup_close int fd = root_open(root, path, O_RDONLY | O_DIRECTORY, err);
    if (fd < 0)
        return fd;
    cleanup_dir DIR *dir = fdopendir(fd);
    if (!dir)
        return error_set(err, errno, "open %s: %s", path, strerror(errno));
    fd = -1; /* the stream's now */
    struct strlist names = STRLIST_INIT;
    const struct dirent *entry;
    while ((entry = readdir(dir)) && names.count <= max)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            strlist_add(&names, entry->d_name);
    if (names.failed || names.count > max) {
        int code = names.failed ? ENOMEM : E2BIG;
        strlist_done(&names);
        return error_set(err, code, "%s: %s", path,
                         code == ENOMEM ? "out of memory" : "more entries than are read");
    }
    if (names.count > 1)
        qsort(names.items, names.count, sizeof *names.items, by_number);
    *ret_names = names;
    return 0;
}
