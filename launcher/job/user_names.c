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
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"
#include "lib/base/strlist.h"
#include "lib/base/trusted.h"

/* The directory holds, named so that each is what it looks like:
 *   job-JOB     of a job that has published something, locked by it; JOB: 16 hexadecimal digits; in
 *               the end "left" if its status is 0
 *   tmp-JOB     a name's file while it is written
 *   SHA-256     of a name: a line "drarun-name 1 JOB LENGTH", LENGTH bytes of name, the value. The
 *               line may go on with " once" or with " to JOB", for one reader, which earlier
 *               releases do not read */
#define FORMAT "drarun-name 1"
#define ONCE " once"
#define TO " to "
#define LEFT "left\n"
#define JOB_DIGITS (USER_NAMES_JOB_SIZE - 1)
#define HEAD_MAX 128
#define ENTRY_MAX (USER_NAMES_SERVICE_MAX + USER_NAMES_VALUE_MAX + HEAD_MAX)
#define TRIES 8
/* The kernel reports that a file was closed before it gives up its lock, and may report nothing (a
 * sandbox, too many watches). */
#define WATCH_MS 1000

struct user_names {
    char path[PATH_MAX];           /* of the directory, since the first name */
    char job[USER_NAMES_JOB_SIZE]; /* the same */
    int dir, lock;                 /* the same; -1 before */
    struct strlist own;            /* files */
    bool read;                     /* something may have been published for us alone */
    int changes;                   /* inotify; -1: none */
    struct event *changed, *clock; /* of a watch */
    void (*on_change)(void *arg);
    void *arg;
};

struct user_names *user_names_new(void)
{
    struct user_names *names = calloc(1, sizeof *names);
    if (names)
        names->dir = names->lock = names->changes = -1;
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
    char job[USER_NAMES_JOB_SIZE];
    size_t name, value; /* where they begin */
    bool once;
    char reader[USER_NAMES_JOB_SIZE]; /* "": any */
};

/* text: the beginning of a file of so many bytes. False when that is not a name in this format and
 * version. */
static bool parse(const char *text, size_t size, struct entry *ret)
{
    size_t length;
    int used = 0, more = 0;
    if (sscanf(text, FORMAT " %16[0-9a-f] %zu%n", ret->job, &length, &used) != 2 ||
        strlen(ret->job) != JOB_DIGITS)
        return false;
    ret->reader[0] = 0;
    ret->once = true;
    if (sscanf(text + used, TO "%16[0-9a-f]%n", ret->reader, &more) == 1)
        used += more;
    else if (strncmp(text + used, ONCE, strlen(ONCE)) == 0)
        used += (int)strlen(ONCE);
    else
        ret->once = false;
    ret->name = (size_t)used + 1;
    if (text[used] != '\n' || size < ret->name || length > size - ret->name)
        return false;
    ret->value = ret->name + length;
    return true;
}

/* Whether a name can be read is in its first line; its value may be long. */
static bool read_head(int fd, struct entry *ret)
{
    char head[HEAD_MAX + 1];
    struct stat st;
    ssize_t length = pread(fd, head, HEAD_MAX, 0);
    if (length < 0 || fstat(fd, &st) < 0)
        return false;
    head[length] = 0;
    return parse(head, (size_t)st.st_size, ret);
}

/* What is for one reader outlives its publisher. */
static bool is_valid(int dir, const struct entry *entry)
{
    return is_alive(dir, entry->job) || (entry->reader[0] && is_alive(dir, entry->reader));
}

/* What this job leaves behind: neither another job's, nor what is for a reader that lives. What it
 * has published, and nobody can read, is its own, too. */
static bool is_to_leave(int dir, const struct entry *entry, const char *job)
{
    return strcmp(entry->job, job) == 0 && !(entry->reader[0] && is_alive(dir, entry->reader));
}

static int open_name(int dir, const char *file)
{
    return openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes the name that is open as fd, unless it is gone already. -EAGAIN: another process is about
 * to. Only the one who holds a lock on it, and sees it in its place, does: a new one may stand
 * there by now. */
static int remove_locked(int dir, const char *file, int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    return is_in_place(dir, file, fd) && unlinkat(dir, file, 0) < 0 ? -errno : 0;
}

/* Removes the name of a job that has ended; false: it is none. What a file says never changes, and
 * a job that has ended does not come back, so that this needs no lock, which would keep others from
 * a name that lives. */
static bool remove_stale(int dir, const char *file)
{
    struct entry entry;
    cleanup_close int fd = open_name(dir, file);
    if (fd < 0)
        return errno == ENOENT;
    if (!read_head(fd, &entry) || is_valid(dir, &entry))
        return false;
    remove_locked(dir, file, fd);
    return true;
}

/* Removes what the job, which lives, has published. Others remove only what is for one lookup.
 * -EAGAIN: one does at this moment. */
static int remove_own(int dir, const char *file, const char *job)
{
    struct entry entry;
    cleanup_close int fd = open_name(dir, file);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    bool known = read_head(fd, &entry);
    if (known && !is_to_leave(dir, &entry, job))
        return 0;
    if (known && !entry.once)
        return unlinkat(dir, file, 0) < 0 ? -errno : 0;
    return remove_locked(dir, file, fd);
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
            remove_stale(folder, file);
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
                      const void *value, size_t length, bool once, const char *reader,
                      struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, FORMAT " %s %zu%s%s\n%s", names->job, strlen(service),
               reader ? TO
               : once ? ONCE
                      : "",
               reader ? reader : "", service);
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
        if (i >= TRIES || !remove_stale(names->dir, to))
            return error_set(err, EEXIST, "a job of this user has that name");
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

/* What others have read is not ours any more. */
static void forget_read(struct user_names *names)
{
    for (size_t i = names->own.count; i-- > 0;)
        if (faccessat(names->dir, names->own.items[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            forget(names, i);
}

int user_names_publish(struct user_names *names, const char *service, const void *value,
                       size_t length, bool once, const char *reader, struct drarun_error *err)
{
    char file[SHA256_TEXT_SIZE], fresh[sizeof "tmp-" + JOB_DIGITS];
    if (names->own.count >= USER_NAMES_MAX)
        forget_read(names);
    if (names->own.count >= USER_NAMES_MAX)
        return error_set(err, EDQUOT, "this job has published %u names, which is the limit",
                         USER_NAMES_MAX);
    if (strlen(service) > USER_NAMES_SERVICE_MAX)
        return error_set(err, EMSGSIZE, "a name has %zu bytes, the limit is %u", strlen(service),
                         USER_NAMES_SERVICE_MAX);
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
    rc = write_file(names, fresh, service, value, length, once, reader, err);
    if (rc == 0)
        rc = put_in_place(names, fresh, file, err);
    if (rc < 0) {
        unlinkat(names->dir, fresh, 0);
        forget(names, names->own.count - 1);
    }
    return rc;
}

/* Of those who look a name up that is for one lookup, one gets it: the one who has locked it reads
 * and removes it. */
static int lock_in_place(int dir, const char *file, int fd, struct drarun_error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EAGAIN
                                    : error_set(err, errno, "lock %s: %s", file, strerror(errno));
    return is_in_place(dir, file, fd) ? 0 : -EAGAIN;
}

/* -EAGAIN: another process has removed it, or is about to. */
static int look_once(int dir, const char *file, const char *service, struct buf *out,
                     struct entry *ret, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    size_t length = strlen(service);
    cleanup_close int fd = open_name(dir, file);
    if (fd < 0)
        return error_set(err, errno, "open %s: %s", file, strerror(errno));
    if (!read_head(fd, ret))
        return error_set(err, ENOENT, "%s: expected a name of this version", file);
    if (!is_valid(dir, ret)) {
        remove_locked(dir, file, fd);
        return error_set(err, ENOENT, "the job that had this name has ended");
    }
    int rc = ret->once ? lock_in_place(dir, file, fd, err) : 0;
    if (rc == 0)
        rc = fd_read_all(fd, file, ENTRY_MAX, &text, err);
    if (rc == 0 && (text.len < ret->value || ret->value - ret->name != length ||
                    memcmp(text.data + ret->name, service, length) != 0))
        rc = error_set(err, ENOENT, "%s: expected a name of this version", file);
    if (rc == 0 && !buf_reserve(out, text.len - ret->value))
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && ret->once && unlinkat(dir, file, 0) < 0)
        rc = error_set(err, errno, "remove %s: %s", file, strerror(errno));
    if (rc == 0)
        buf_add(out, text.data + ret->value, text.len - ret->value);
    buf_done(&text);
    return rc;
}

int user_names_lookup(const char *service, struct buf *out, char ret_job[USER_NAMES_JOB_SIZE],
                      struct drarun_error *err)
{
    char file[SHA256_TEXT_SIZE], path[PATH_MAX];
    struct entry entry;
    cleanup_close int fd = -1;
    int rc = open_folder(false, path, &fd, err);
    if (rc < 0)
        return rc;
    sha256_text(service, strlen(service), file);
    rc = -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++)
        rc = look_once(fd, file, service, out, &entry, err);
    if (rc == -EAGAIN)
        return error_set(err, EAGAIN, "%s/%s: another process reads it", path, file);
    if (rc < 0) {
        error_prefix(err, "%s", path);
        return rc;
    }
    memcpy(ret_job, entry.job, sizeof entry.job);
    return 0;
}

/* Changes nothing, so that who watches the directory is not called. */
bool user_names_is_taken(const struct user_names *names, const char *service)
{
    char file[SHA256_TEXT_SIZE];
    struct entry entry;
    sha256_text(service, strlen(service), file);
    cleanup_close int fd = open_name(names->dir, file);
    return fd >= 0 ? !read_head(fd, &entry) || is_valid(names->dir, &entry) : errno != ENOENT;
}

/* What cannot be removed now is in the end. */
void user_names_unpublish(struct user_names *names, const char *service)
{
    char file[SHA256_TEXT_SIZE];
    sha256_text(service, strlen(service), file);
    for (size_t i = 0; i < names->own.count; i++) {
        if (strcmp(names->own.items[i], file) != 0)
            continue;
        if (remove_own(names->dir, file, names->job) == 0)
            forget(names, i);
        return;
    }
}

/* ---- other jobs ---- */

const char *user_names_job(struct user_names *names, struct drarun_error *err)
{
    names->read = true;
    return move_in(names, err) == 0 ? names->job : NULL;
}

bool user_names_is_alive(const struct user_names *names, const char *job)
{
    return is_alive(names->dir, job);
}

int user_names_open_job(const struct user_names *names, const char *job)
{
    char file[sizeof "job-" + JOB_DIGITS];
    snprintf(file, sizeof file, "job-%s", job);
    int fd = openat(names->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

enum user_names_state user_names_state(int job)
{
    char text[sizeof LEFT] = "";
    if (flock(job, LOCK_SH | LOCK_NB) < 0)
        return USER_NAMES_LIVES;
    flock(job, LOCK_UN);
    return pread(job, text, sizeof text - 1, 0) > 0 && strcmp(text, LEFT) == 0 ? USER_NAMES_LEFT
                                                                               : USER_NAMES_DIED;
}

void user_names_leave(struct user_names *names)
{
    if (names->lock >= 0)
        fd_write_all(names->lock, LEFT, strlen(LEFT)); /* if not, it has died to the others */
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct user_names *names = arg;
    (void)fd, (void)what;
    names->on_change(names->arg);
}

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
    char events[4096];
    while (read(fd, events, sizeof events) > 0) { /* which file it is does not matter */
    }
    on_tick(fd, what, arg);
}

int user_names_watch(struct user_names *names, struct event_base *base, void (*changed)(void *arg),
                     void *arg, struct drarun_error *err)
{
    const struct timeval every = timeval_from_ms(WATCH_MS);
    if (names->clock)
        return 0;
    names->on_change = changed;
    names->arg = arg;
    names->clock = event_new(base, -1, EV_PERSIST, on_tick, names);
    if (!names->clock || event_add(names->clock, &every) < 0) {
        user_names_unwatch(names);
        return error_set(err, ENOMEM, "the names of other jobs cannot be watched: out of memory");
    }
    names->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (names->changes >= 0 && inotify_add_watch(names->changes, names->path,
                                                 IN_MOVED_TO | IN_DELETE | IN_CLOSE_WRITE) >= 0)
        names->changed = event_new(base, names->changes, EV_READ | EV_PERSIST, on_changed, names);
    if (names->changed)
        event_add(names->changed, NULL);
    return 0;
}

void user_names_unwatch(struct user_names *names)
{
    if (names->changed)
        event_free(TAKE_PTR(names->changed));
    if (names->clock)
        event_free(TAKE_PTR(names->clock));
    close_fd(&names->changes);
}

void user_names_free(struct user_names *names)
{
    char file[sizeof "job-" + JOB_DIGITS];
    if (!names)
        return;
    user_names_unwatch(names);
    for (size_t i = 0; i < names->own.count; i++)
        remove_own(names->dir, names->own.items[i], names->job);
    if (names->lock >= 0) {
        snprintf(file, sizeof file, "job-%s", names->job);
        unlinkat(names->dir, file, 0);
        if (names->read) /* what others have left for us alone */
            sweep(names->dir);
        rmdir(names->path); /* if nobody else is in it */
    }
    close_fd(&names->lock);
    close_fd(&names->dir);
    strlist_done(&names->own);
    free(names);
}
