/* SPDX-License-Identifier: Apache-2.0 */
/* A tree is taken apart from its top: a directory that is not empty is moved to the top, where it
 * is emptied in its turn. So its depth, which programs that wrote there may have chosen, costs
 * neither stack nor descriptors nor path names, and each directory is read once. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/chance.h"
#include "lib/base/cleanup.h"
#include "lib/base/dir_entries.h"
#include "lib/base/file.h"

#define IN_PLACE_MAX 32 /* directories in each other that cannot be moved */

struct removal {
    int top; /* descriptor */
    dev_t device;
    char prefix[32];       /* of the names that directories get there, which nobody can guess */
    uint32_t moved, level; /* level: how many removals this one is within */
    int first;             /* error; 0: none */
};

static int remove_tree(int dirfd, const char *name, uint32_t level);

static void note(struct removal *r, int rc)
{
    if (rc < 0 && r->first == 0)
        r->first = rc;
}

static void moved_name(const struct removal *r, uint32_t number, char name[64])
{
    snprintf(name, 64, "%s%" PRIu32, r->prefix, number);
}

static bool is_mount(const struct removal *r, int fd, const char *name)
{
    struct stat st;
    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev != r->device;
}

/* 0: it is gone; 1: a directory that is not empty. */
static int remove_simple(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    /* an empty one goes without a descriptor, which there may not be */
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return errno == ENOTEMPTY || errno == EEXIST || errno == EACCES ? 1 : -errno;
}

static int take_away(struct removal *r, int fd, const char *name)
{
    char to[64];
    if (is_mount(r, fd, name))
        return -EXDEV;
    int rc = remove_simple(fd, name);
    if (rc <= 0)
        return rc;
    moved_name(r, r->moved, to);
    if (renameat(fd, name, r->top, to) == 0) {
        r->moved++;
        return 0;
    }
    /* not one of an image's layer that overlayfs shows */
    return r->level < IN_PLACE_MAX ? remove_tree(fd, name, r->level + 1) : -ELOOP;
}

static void empty(struct removal *r, int fd)
{
    struct dir_entries entries = {.fd = fd};
    const char *name;
    int rc;
    while ((name = dir_entries_next(&entries, &rc)))
        if (strncmp(name, r->prefix, strlen(r->prefix)) != 0)
            note(r, take_away(r, fd, name));
    note(r, rc);
}

static int open_dir(int dirfd, const char *name)
{
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_moved(struct removal *r, uint32_t number)
{
    char name[64];
    moved_name(r, number, name);
    cleanup_close int fd = open_dir(r->top, name);
    if (fd < 0)
        note(r, errno == ENOENT ? 0 : -errno);
    else
        empty(r, fd);
    if (unlinkat(r->top, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        note(r, -errno);
}

static int remove_tree(int dirfd, const char *name, uint32_t level)
{
    struct removal r = {.level = level};
    struct stat st;
    int rc = remove_simple(dirfd, name);
    if (rc <= 0)
        return rc;
    cleanup_close int top = open_dir(dirfd, name);
    if (top < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(top, &st) < 0)
        return -errno;
    snprintf(r.prefix, sizeof r.prefix, ".%016" PRIx64 "-",
             (uint64_t)(chance_draw() * (double)(UINT64_C(1) << 53)));
    r.top = top;
    r.device = st.st_dev;
    empty(&r, top);
    for (uint32_t i = 0; i < r.moved; i++)
        remove_moved(&r, i);
    if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        note(&r, -errno);
    return r.first;
}

int tree_remove(int dirfd, const char *name)
{
    return remove_tree(dirfd, name, 0);
}
