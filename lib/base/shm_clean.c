/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/base/shm_clean.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/dir_entries.h"

/* The libraries' names: how they begin, and whether exactly the six letters and digits of mkstemp
 * follow. A user's file may begin so, too: NCCL_DEBUG_FILE=/dev/shm/nccl-debug.%h.log. */
static const struct {
    const char *begin;
    bool random;
} names[] = {
    {"vader_segment.", false}, {"sm_segment.", false},
    {"osc_rdma.", false},      {"osc_sm.", false},    /* Open MPI 4 and 5 */
    {"mpich_shar_tmp", true},  {"mpich_shm_", false}, /* MPICH and what derives from it */
    {"Intel_MPI_", true},                             /* Intel MPI */
    {"psm2_shm.", false},      {"psm3_shm.", false},  /* Omni-Path and RoCE under it */
    {"ucx_shm_", false},                              /* UCX */
    {"nccl-", true},                                  /* NCCL and RCCL */
};

#define TURN_TRIES 200
#define TURN_PAUSE_NS 1000000

struct shm_clean {
    int dir;
    ino_t *old; /* of matching files that were there before the job */
    size_t old_count;
};

static bool is_random(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return strlen(text) == 6 && strspn(text, letters) == 6;
}

static bool is_known_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t length = strlen(names[i].begin);
        if (strncmp(name, names[i].begin, length) == 0)
            return !names[i].random || is_random(name + length);
    }
    return false;
}

static bool is_old(const struct shm_clean *shm, ino_t inode)
{
    for (size_t i = 0; i < shm->old_count; i++)
        if (shm->old[i] == inode)
            return true;
    return false;
}

/* A descriptor of its own for the directory, so that the next one starts at its beginning. */
static int open_list(int dir)
{
    return openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool note_old(struct shm_clean *shm)
{
    cleanup_close int list = open_list(shm->dir);
    struct dir_entries entries = {.fd = list};
    struct stat st;
    size_t cap = 0;
    int rc = -1;
    for (const char *name; list >= 0 && (name = dir_entries_next(&entries, &rc));) {
        if (!is_known_name(name) || fstatat(shm->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        ino_t *grown = array_room(shm->old, shm->old_count, &cap, sizeof *grown);
        if (!grown)
            return false;
        shm->old = grown;
        shm->old[shm->old_count++] = st.st_ino;
    }
    return rc == 0;
}

struct shm_clean *shm_clean_begin_in(const char *dir)
{
    struct shm_clean *shm = calloc(1, sizeof *shm);
    if (!shm)
        return NULL;
    shm->dir = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (shm->dir >= 0 && note_old(shm))
        return shm;
    int code = errno;
    shm_clean_free(shm);
    errno = code;
    return NULL;
}

struct shm_clean *shm_clean_begin(void)
{
    return shm_clean_begin_in("/dev/shm");
}

/* A write lease is given only for a file that nobody else has open; a mapping keeps it open. Unlike
 * /proc it also shows processes of other pid namespaces and of other users. */
static bool is_unused(int fd)
{
    /* one who opens it meanwhile makes the kernel send us this signal: not SIGIO, which kills */
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return false;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}

static bool remove_left(const struct shm_clean *shm, const char *name)
{
    struct stat st, now;
    /* O_NONBLOCK: a named pipe must not hold us */
    cleanup_close int fd =
        openat(shm->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        is_old(shm, st.st_ino) || !is_unused(fd))
        return false;
    /* the name still means the file that was looked at */
    return fstatat(shm->dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st.st_ino &&
           unlinkat(shm->dir, name, 0) == 0;
}

/* Agents of one machine end together, and each would see the other's descriptor as a user of the
 * file: they take turns. Anyone who can open the directory can hold the lock, so the wait is short.
 */
static void take_turn(int dir)
{
    for (int tries = 0; tries < TURN_TRIES; tries++) {
        if (flock(dir, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return;
        nanosleep(&(struct timespec){.tv_nsec = TURN_PAUSE_NS}, NULL);
    }
}

int shm_clean_run(struct shm_clean *shm)
{
    cleanup_close int list = shm ? open_list(shm->dir) : -1;
    struct dir_entries entries = {.fd = list};
    int removed = 0, rc;
    if (list >= 0)
        take_turn(list); /* closing it ends the turn */
    for (const char *name; list >= 0 && (name = dir_entries_next(&entries, &rc));)
        if (is_known_name(name) && remove_left(shm, name))
            removed++;
    return removed;
}

void shm_clean_free(struct shm_clean *shm)
{
    if (!shm)
        return;
    close_fd(&shm->dir);
    free(shm->old);
    free(shm);
}

void shm_clean_dir(const char *session_dir, char *path, size_t size)
{
    static const char shm[] = "/dev/shm/";
    const char *slash = strrchr(session_dir, '/');
    if (strncmp(session_dir, shm, strlen(shm)) == 0)
        snprintf(path, size, "%s/shm", session_dir);
    else
        snprintf(path, size, "%s%s", shm, slash ? slash + 1 : session_dir);
}
