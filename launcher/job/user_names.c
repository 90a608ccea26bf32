/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/user_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"
#include "lib/base/strlist.h"
#include "lib/base/trusted.h"

/* The directory holds, named so that each is what it looks like:
 *   job-JOB     of a job that has published something, locked by it; JOB: 16 hexadecimal digits
 *   tmp-JOB     a name's file while it is written
 *   SHA-256     of a name: a line "drarun-name 1 JOB LENGTH", LENGTH bytes of name, the value */
#define FORMAT "drarun-name 1"
#define JOB_DIGITS 16
#define ENTRY_MAX (2 * USER_NAMES_VALUE_MAX)
#define TRIES 8

struct user_names {
    char path[PATH_MAX];      /* of the directory, since the first name */
    char job[JOB_DIGITS + 1]; /* the same */
    int dir, lock;            /* the same; -1 before */
    struct strlist own;       /* files */
};

struct user_names *user_names_new(void)
{
    struct user_names *names = calloc(1, sizeof *names);
    if (names)
        names->dir = names->lock = -1;
    return names;
}

/* ---- the directory ---- */

static int check_folder(int fd, const char *path, struct drarun_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (st.st_uid != geteuid())
        return error_set(err, EPERM, "%s: belongs to user %u, expected user %u: remove it", path,
                         st.st_uid, geteuid());
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return error_set(err, EPERM, "%s: other users may use it (mode %o): run chmod 700", path,
                         st.st_mode & 07777u);
    return 0;
}

/* That of a login, which another user's environment may name. */
static bool is_own_runtime_dir(const char *path)
{
    struct stat st;
    return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int folder_path(char path[PATH_MAX], struct drarun_error *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    int length;
    if (is_own_runtime_dir(base)) {
        length = snprintf(path, PATH_MAX, "%s/drarun", base);
    } else {
        base = getenv("TMPDIR");
        base = base && base[0] == '/' ? base : "/tmp";
        length = snprintf(path, PATH_MAX, "%s/drarun-%u", base, geteuid());
    }
    return length < PATH_MAX ? 0 : error_set(err, ENAMETOOLONG, "%s: the path is too long", base);
}

static int open_checked(const char *path, int *ret_fd, struct drarun_error *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return error_set(err, EPERM, "%s: expected a directory that is not a link: remove it",
                         path);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    int rc = check_folder(fd, path, err);
    if (rc == 0)
        rc = dir_check_trusted(path, err);
    if (rc == 0)
        *ret_fd = take_fd(&fd);
    return rc;
}

/* -ENOENT: it is not there and is not to be made. */
static int open_folder(bool make, char path[PATH_MAX], int *ret_fd, struct drarun_error *err)
{
    int rc = folder_path(path, err);
    if (rc < 0)
        return rc;
    bool made = make && mkdir(path, 0700) == 0;
    if (make && !made && errno != EEXIST)
        return error_set(err, errno, "make %s: %s", path, strerror(errno));
    rc = open_checked(path, ret_fd, err);
    if (rc < 0 && made)
        rmdir(path);
    return rc;
}

/* ---- jobs ---- */

static bool is_hexadecimal(const char *text, size_t length)
{
    return strspn(text, "0123456789abcdef") == length && !text[length];
}

/* The file that is open as fd still stands under its name. */
static bool is_in_place(int dir, const char *file, int fd)
{
    struct stat open, there;
    return fstat(fd, &open) == 0 && fstatat(dir, file, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

static bool is_alive(int dir, const char *job)
{
    char file[sizeof "job-" + JOB_DIGITS];
    snprintf(file, sizeof file, "job-%s", job);
    cleanup_close int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? flock(fd, LOCK_SH | LOCK_NB) < 0 : errno != ENOENT;
}

/* -EAGAIN: somebody swept it before it was locked. */
static int make_job_file(struct user_names *names, struct drarun_error *err)
{
    char file[sizeof "job-" + JOB_DIGITS];
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_set(err, errno, "random numbers: %s", strerror(errno));
    snprintf(names->job, sizeof names->job, "%016" PRIx64, number);
    snprintf(file, sizeof file, "job-%s", names->job);
    cleanup_close int fd =
        openat(names->dir, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == ENOENT || errno == EEXIST))
        return -EAGAIN;
    if (fd < 0)
        return error_set(err, errno, "make %s/%s: %s", names->path, file, strerror(errno));
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK)
        return error_set(err, errno, "lock %s/%s: %s", names->path, file, strerror(errno));
    if (!locked || !is_in_place(names->dir, file, fd))
        return -EAGAIN;
    names->lock = take_fd(&fd);
    return 0;
}

/* ---- names ---- */

struct entry {
    char job[JOB_DIGITS + 1];
    size_t name, value; /* where they begin */
};

/* False when the file is not a name in this format and version. */
static bool parse(const struct buf *text, struct entry *ret)
{
    size_t length;
    int used = 0;
    if (!text->data ||
        sscanf(text->data, FORMAT " %16[0-9a-f] %zu%n", ret->job, &length, &used) != 2 ||
        text->data[used] != '\n' || strlen(ret->job) != JOB_DIGITS)
        return false;
    ret->name = (size_t)used + 1;
    if (length > text->len - ret->name)
        return false;
    ret->value = ret->name + length;
    return true;
}

/* A name's file goes with its job. Only the one who holds a lock on it, and sees it in its place,
 * removes it: a new one may stand there by now. */
static void remove_if_dead(int dir, const char *file)
{
    struct buf text = BUF_INIT;
    struct entry entry;
    cleanup_close int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_in_place(dir, file, fd) &&
        file_read(dir, file, ENTRY_MAX, &text, NULL) == 0 && parse(&text, &entry) &&
        !is_alive(dir, entry.job))
        unlinkat(dir, file, 0);
    buf_done(&text);
}

/* What jobs have left that were killed. */
static void sweep(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *found;
    if (!dir && fd >= 0)
        close(fd);
    while (dir && (found = readdir(dir))) {
        const char *file = found->d_name;
        bool of_job = strncmp(file, "job-", 4) == 0 || strncmp(file, "tmp-", 4) == 0;
        if (of_job && is_hexadecimal(file + 4, JOB_DIGITS) && !is_alive(folder, file + 4))
            unlinkat(folder, file, 0);
        else if (is_hexadecimal(file, SHA256_TEXT_SIZE - 1))
            remove_if_dead(folder, file);
    }
}

/* The directory may go, when another job leaves it, until our file is in it. */
static int move_in(struct user_names *names, struct drarun_error *err)
{
    int rc = names->lock >= 0 ? 0 : -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        close_fd(&names->dir);
        rc = open_folder(true, names->path, &names->dir, err);
        if (rc == 0)
            rc = make_job_file(names, err);
        if (rc == 0)
            sweep(names->dir);
    }
    return rc == -EAGAIN ? error_set(err, EAGAIN, "%s: files vanish there", names->path) : rc;
}

static int write_file(const struct user_names *names, const char *file, const char *service,
                      const void *value, size_t length, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, FORMAT " %s %zu\n%s", names->job, strlen(service), service);
    buf_add(&text, value, length);
    cleanup_close int fd =
        openat(names->dir, file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = text.failed ? -ENOMEM : fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    buf_done(&text);
    return rc < 0 ? error_set(err, -rc, "write %s/%s: %s", names->path, file, strerror(-rc)) : 0;
}

static int put_in_place(const struct user_names *names, const char *from, const char *to,
                        struct drarun_error *err)
{
    for (int i = 0; renameat2(names->dir, from, names->dir, to, RENAME_NOREPLACE) < 0; i++) {
        if (errno != EEXIST)
            return error_set(err, errno, "rename %s/%s: %s", names->path, from, strerror(errno));
        if (i > 0)
            return error_set(err, EEXIST, "a job of this user has that name");
        remove_if_dead(names->dir, to);
    }
    return 0;
}

static void forget(struct user_names *names, size_t at)
{
    size_t last = --names->own.count;
    free(names->own.items[at]);
    names->own.items[at] = names->own.items[last];
    names->own.items[last] = NULL;
}

int user_names_publish(struct user_names *names, const char *service, const void *value,
                       size_t length, struct drarun_error *err)
{
    char file[SHA256_TEXT_SIZE], fresh[sizeof "tmp-" + JOB_DIGITS];
    if (names->own.count >= USER_NAMES_MAX)
        return error_set(err, EDQUOT, "this job has published %u names, which is the limit",
                         USER_NAMES_MAX);
    if (strlen(service) > USER_NAMES_VALUE_MAX / 2)
        return error_set(err, EMSGSIZE, "a name has %zu bytes, the limit is %u", strlen(service),
                         USER_NAMES_VALUE_MAX / 2);
    if (length > USER_NAMES_VALUE_MAX)
        return error_set(err, EMSGSIZE, "a name's value has %zu bytes, the limit is %u", length,
                         USER_NAMES_VALUE_MAX);
    int rc = move_in(names, err);
    if (rc < 0)
        return rc;
    sha256_text(service, strlen(service), file);
    snprintf(fresh, sizeof fresh, "tmp-%s", names->job);
    strlist_add(&names->own, file);
    if (names->own.failed)
        return error_set(err, ENOMEM, "out of memory");
    rc = write_file(names, fresh, service, value, length, err);
    if (rc == 0)
        rc = put_in_place(names, fresh, file, err);
    if (rc < 0) {
        unlinkat(names->dir, fresh, 0);
        forget(names, names->own.count - 1);
    }
    return rc;
}

int user_names_lookup(const char *service, struct buf *out, struct drarun_error *err)
{
    char file[SHA256_TEXT_SIZE], path[PATH_MAX];
    struct buf text = BUF_INIT;
    struct entry entry;
    cleanup_close int fd = -1;
    int rc = open_folder(false, path, &fd, err);
    if (rc < 0)
        return rc;
    sha256_text(service, strlen(service), file);
    rc = file_read(fd, file, ENTRY_MAX, &text, err);
    if (rc == 0 && (!parse(&text, &entry) || entry.value - entry.name != strlen(service) ||
                    memcmp(text.data + entry.name, service, strlen(service)) != 0))
        rc = error_set(err, ENOENT, "%s/%s: expected a name of this version", path, file);
    if (rc == 0 && !is_alive(fd, entry.job)) {
        remove_if_dead(fd, file);
        rc = error_set(err, ENOENT, "the job that had this name has ended");
    }
    if (rc == 0)
        buf_add(out, text.data + entry.value, text.len - entry.value);
    buf_done(&text);
    return rc;
}

void user_names_unpublish(struct user_names *names, const char *service)
{
    char file[SHA256_TEXT_SIZE];
    sha256_text(service, strlen(service), file);
    for (size_t i = 0; i < names->own.count; i++) {
        if (strcmp(names->own.items[i], file) != 0)
            continue;
        unlinkat(names->dir, file, 0);
        forget(names, i);
        return;
    }
}

void user_names_free(struct user_names *names)
{
    char file[sizeof "job-" + JOB_DIGITS];
    if (!names)
        return;
    for (size_t i = 0; i < names->own.count; i++)
        unlinkat(names->dir, names->own.items[i], 0);
    if (names->lock >= 0) {
        snprintf(file, sizeof file, "job-%s", names->job);
        unlinkat(names->dir, file, 0);
        rmdir(names->path); /* if nobody else is in it */
    }
    close_fd(&names->lock);
    close_fd(&names->dir);
    strlist_done(&names->own);
    free(names);
}
