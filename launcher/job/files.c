/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/wire/frame.h"

struct worker_files {
    char name[NAME_MAX + 1]; /* of the last one; "": none yet */
    uint64_t bytes;
    uint32_t files;
    bool cut;
};

struct job_files {
    char *folder;
    int fd;
    uint32_t workers;
    uint64_t files, bytes;
    bool failed; /* that was said */
    struct worker_files *worker;
};

static int make(const char *report, struct job_files *files, struct drarun_error *err)
{
    if (asprintf(&files->folder, "%s.inspector", report) < 0)
        return error_set(err, ENOMEM, "out of memory");
    int rc = dirs_make(files->folder, 0777, err);
    if (rc < 0)
        return rc;
    files->fd = open(files->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return files->fd < 0
               ? error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno,
                            "cannot open the directory %s: %s", files->folder, strerror(errno))
               : 0;
}

struct job_files *job_files_new(const char *report, uint32_t workers, struct drarun_error *err)
{
    struct job_files *files = calloc(1, sizeof *files);
    if (files) {
        files->fd = -1;
        files->workers = workers;
        files->worker = calloc(workers + 1u, sizeof *files->worker);
    }
    if (!files || !files->worker) {
        job_files_free(files);
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    if (make(report, files, err) == 0)
        return files;
    job_files_free(files);
    return NULL;
}

void job_files_free(struct job_files *files)
{
    if (!files)
        return;
    close_fd(&files->fd);
    free(files->folder);
    free(files->worker);
    free(files);
}

/* One name below a folder, which no list of files hides. */
static bool is_name(const char *name)
{
    return name[0] && name[0] != '.' && strlen(name) <= NAME_MAX && !strchr(name, '/');
}

static int write_piece(struct job_files *files, uint32_t worker, const char *name, bool first,
                       const void *data, size_t length)
{
    char path[NAME_MAX + 32];
    snprintf(path, sizeof path, "worker-%u", worker);
    if (mkdirat(files->fd, path, 0777) < 0 && errno != EEXIST)
        return -errno;
    cleanup_close int dir =
        openat(files->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    cleanup_close int fd = file_open_regular(dir, name, O_CREAT | (first ? O_TRUNC : O_APPEND));
    return fd < 0 ? fd : fd_write_all(fd, data, length);
}

int job_files_take(struct job_files *files, uint32_t worker, const Drarun__Wire__File *message,
                   struct drarun_error *err)
{
    struct worker_files *w = &files->worker[worker];
    if (!is_name(message->name))
        return error_set(err, EPROTO, "a file with an invalid name");
    if (message->data.len > WIRE_COLLECT_MAX - w->bytes)
        return error_set(err, EPROTO, "more bytes of files than it may send");
    bool first = strcmp(w->name, message->name) != 0;
    w->cut |= message->cut || (first && w->files == WIRE_COLLECT_FILES_MAX);
    if (first && w->files == WIRE_COLLECT_FILES_MAX) /* an earlier agent has no such limit */
        return 0;
    w->files += first;
    snprintf(w->name, sizeof w->name, "%s", message->name);
    w->bytes += message->data.len;
    int rc =
        write_piece(files, worker, message->name, first, message->data.data, message->data.len);
    if (rc == 0) {
        files->files += first;
        files->bytes += message->data.len;
    } else if (!files->failed) {
        files->failed = true;
        log_error("cannot write %s/worker-%u/%s: %s; some files of the ranks are lost",
                  files->folder, worker, message->name, file_open_regular_why(-rc));
    }
    return 0;
}

json_t *job_files_json(const struct job_files *files)
{
    json_t *cut = json_array();
    for (uint32_t i = 0; i < files->workers; i++)
        if (files->worker[i].cut)
            json_array_append_new(cut, json_integer(i));
    json_t *json = json_pack("{s:s, s:I, s:I}", "folder", files->folder, "files",
                             (json_int_t)files->files, "bytes", (json_int_t)files->bytes);
    if (json && json_array_size(cut) > 0)
        json_object_set(json, "cut", cut);
    json_decref(cut);
    return json;
}
