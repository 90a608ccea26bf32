/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define STREAMS 2
#define FD_SHARE 4 /* we hold open at most this part of all descriptors */

struct output_files {
    int dir;
    const char *path; /* borrowed */
    uint32_t ranks;
    int width;
    uint32_t kept; /* files held open, of the lowest ranks; the others are opened for each write */
    int *fds;      /* kept ones */
};

static void file_name(const struct output_files *f, uint32_t rank, int stream, char name[40])
{
    snprintf(name, 40, "rank.%0*u.%s", f->width, rank, stream == 1 ? "out" : "err");
}

static int fail(const struct output_files *f, const char *name, int code, const char *what,
                struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code, "cannot %s %s/%s: %s", what, f->path,
                      name, file_open_regular_why(code));
}

static uint32_t fds_to_keep(uint32_t files)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    rlim_t room = limit.rlim_cur / FD_SHARE;
    return files < room ? files : (uint32_t)room;
}

static int create_one(struct output_files *f, uint32_t index, struct drarun_error *err)
{
    char name[40];
    file_name(f, index / STREAMS, (int)(index % STREAMS) + 1, name);
    cleanup_close int fd = file_open_regular(f->dir, name, O_APPEND | O_CREAT | O_TRUNC);
    if (fd < 0)
        return fail(f, name, -fd, "create", err);
    /* a full disk often still makes empty files */
    if (index == 0 && (fd_write_all(fd, "\n", 1) < 0 || ftruncate(fd, 0) < 0))
        return fail(f, name, errno, "write to", err);
    if (index < f->kept)
        f->fds[index] = take_fd(&fd);
    return 0;
}

struct output_files *output_files_new(const char *dir, uint32_t ranks, struct drarun_error *err)
{
    struct output_files *f = calloc(1, sizeof *f);
    if (!f) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *f = (struct output_files){.dir = -1, .path = dir, .ranks = ranks};
    f->width = snprintf(NULL, 0, "%u", ranks - 1);
    struct drarun_error bad = {0};
    int rc = *dir ? dirs_make(dir, 0777, &bad)
                  : error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                               "--output-dir: expected a directory, got \"\"");
    if (rc < 0 && *dir)
        error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "--output-dir %s: %s", dir, bad.text);
    if (rc == 0)
        f->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && f->dir < 0)
        rc = error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "--output-dir %s: %s", dir,
                        strerror(errno));
    f->fds = calloc(fds_to_keep(ranks * STREAMS) + 1, sizeof *f->fds);
    if (rc == 0 && !f->fds)
        rc = error_set(err, ENOMEM, "out of memory");
    for (uint32_t keep = fds_to_keep(ranks * STREAMS); f->fds && f->kept < keep;)
        f->fds[f->kept++] = -1;
    for (uint32_t i = 0; rc == 0 && i < ranks * STREAMS; i++)
        rc = create_one(f, i, err);
    if (rc < 0) {
        output_files_free(f);
        return NULL;
    }
    return f;
}

int output_files_grow(struct output_files *f, uint32_t ranks, struct drarun_error *err)
{
    for (; f->ranks < ranks; f->ranks++)
        for (uint32_t stream = 0; stream < STREAMS; stream++) {
            int rc = create_one(f, f->ranks * STREAMS + stream, err);
            if (rc < 0)
                return rc;
        }
    return 0;
}

void output_files_free(struct output_files *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->kept; i++)
        close_fd(&f->fds[i]);
    close_fd(&f->dir);
    free(f->fds);
    free(f);
}

int output_files_write(struct output_files *f, uint32_t rank, int stream, const void *data,
                       size_t length, struct drarun_error *err)
{
    char name[40];
    uint32_t index = rank * STREAMS + (uint32_t)stream - 1;
    cleanup_close int opened = -1;
    int fd = index < f->kept ? f->fds[index] : -1;
    file_name(f, rank, stream, name);
    if (fd < 0)
        fd = opened = file_open_regular(f->dir, name, O_APPEND);
    if (fd < 0)
        return fail(f, name, -fd, "open", err);
    int rc = fd_write_all(fd, data, length);
    return rc < 0 ? fail(f, name, -rc, "write to", err) : 0;
}
