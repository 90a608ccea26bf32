/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/exec_reason.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "worker/ranks/exec_head.h"

static int refuse(struct drarun_error *err, int code, const char *path, const char *why)
{
    return error_kind(err, DRARUN_ERR_NOT_EXECUTABLE, code, "cannot execute %s: %s", path, why);
}

static int no_format(const struct exec_head *head, const char *path, struct drarun_error *err)
{
    struct utsname machine;
    char why[200];
    switch (head->type) {
    case EXEC_EMPTY:
        return refuse(err, ENOEXEC, path, "the file is empty");
    case EXEC_ELF:
        if (head->native && !head->linked)
            return refuse(err, ENOEXEC, path, "it is an object file or a core, not a program");
        uname(&machine);
        if (head->native)
            snprintf(why, sizeof why, "the kernel does not run %s programs",
                     exec_head_machine_name(head->machine));
        else
            snprintf(why, sizeof why, "it is a program for %s (ELF machine %u), this is %s",
                     exec_head_machine_name(head->machine), (unsigned)head->machine,
                     machine.machine);
        return refuse(err, ENOEXEC, path, why);
    case EXEC_SCRIPT:
        return refuse(err, ENOEXEC, path, "its first line names no interpreter after \"#!\"");
    case EXEC_MARKED:
        return refuse(err, ENOEXEC, path,
                      "a byte order mark precedes its \"#!\"; save it as UTF-8 without the mark");
    case EXEC_OTHER:
        return refuse(err, ENOEXEC, path,
                      "neither a program nor a script: a script's first line must be like "
                      "\"#!/bin/sh\"");
    default:
        return refuse(err, ENOEXEC, path, strerror(ENOEXEC));
    }
}

/* The file is there, but what runs it is not. */
static int no_interpreter(const struct exec_head *head, const char *path, struct drarun_error *err)
{
    size_t length = strlen(head->interpreter);
    if (head->type == EXEC_SCRIPT && length > 0 && head->interpreter[length - 1] == '\r')
        return refuse(err, ENOENT, path,
                      "its lines end in carriage returns (a DOS text file); convert it (dos2unix)");
    return error_kind(err, DRARUN_ERR_NOT_EXECUTABLE, ENOENT, "cannot execute %s: its %s %s %s",
                      path, head->type == EXEC_SCRIPT ? "interpreter" : "loader", head->interpreter,
                      "is missing here");
}

static int no_permission(int dir, const char *path, const struct exec_head *head,
                         struct drarun_error *err)
{
    struct stat st;
    struct statvfs fs;
    if (fstatat(dir, path, &st, 0) < 0)
        return refuse(err, EACCES, path, "a directory in its path does not allow search");
    if (S_ISDIR(st.st_mode))
        return refuse(err, EACCES, path, "it is a directory");
    if (!S_ISREG(st.st_mode))
        return refuse(err, EACCES, path, "it is not a regular file");
    if (faccessat(dir, path, X_OK, 0) < 0 && (st.st_mode & 0111) == 0)
        return refuse(err, EACCES, path, "the file is not marked executable (chmod +x)");
    cleanup_close int fd = openat(dir, path, O_PATH | O_CLOEXEC);
    if (fd >= 0 && fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        return refuse(err, EACCES, path, "its file system is mounted noexec");
    if (head->interpreter[0] && access(head->interpreter, X_OK) < 0)
        return error_kind(err, DRARUN_ERR_NOT_EXECUTABLE, EACCES,
                          "cannot execute %s: its interpreter %s: %s", path, head->interpreter,
                          strerror(errno));
    return refuse(err, EACCES, path, "permission denied");
}

/* A relative path is looked up in the ranks' directory, which is the agent's where its user thinks
 * of another one. */
static int not_found(int dir, const char *path, int code, struct drarun_error *err)
{
    char link[64] = "/proc/self/cwd", wd[PATH_MAX];
    ssize_t length = -1;
    if (dir != AT_FDCWD)
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    if (path[0] != '/')
        length = readlink(link, wd, sizeof wd - 1);
    if (length < 0)
        return error_kind(err, DRARUN_ERR_NOT_FOUND, code, "no program %s", path);
    wd[length] = '\0';
    return error_kind(err, DRARUN_ERR_NOT_FOUND, code, "no program %s in %s", path, wd);
}

int exec_reason(int dir, const char *path, int code, struct drarun_error *err)
{
    struct exec_head head;
    struct stat st;
    exec_head_read(dir, path, &head);
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        if (fstatat(dir, path, &st, 0) == 0 && head.interpreter[0])
            return no_interpreter(&head, path, err);
        return not_found(dir, path, code, err);
    case EACCES:
    case EPERM:
        return no_permission(dir, path, &head, err);
    case ENOEXEC:
        return no_format(&head, path, err);
    case E2BIG:
        return refuse(err, code, path,
                      "its arguments and environment are larger than execve takes");
    case ETXTBSY:
        return refuse(err, code, path, "it is open for writing");
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, code, "cannot execute %s: %s", path,
                          strerror(code));
    default:
        return refuse(err, code, path, strerror(code));
    }
}

/* Whether the kernel may run formats that it does not know itself, through binfmt_misc. */
static bool has_foreign_formats(void)
{
    cleanup_dir DIR *dir = opendir("/proc/sys/fs/binfmt_misc");
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "register") != 0 &&
            strcmp(entry->d_name, "status") != 0)
            return true;
    return false;
}

int exec_reason_check(int dir, const char *path, struct drarun_error *err)
{
    struct exec_head head;
    exec_head_read(dir, path, &head);
    bool known = (head.type == EXEC_ELF && head.native && head.linked) ||
                 (head.type == EXEC_SCRIPT && head.interpreter[0]);
    if (head.type != EXEC_UNREADABLE && !known)
        return has_foreign_formats() ? 0 : no_format(&head, path, err);
    if (head.interpreter[0] && faccessat(dir, head.interpreter, F_OK, 0) < 0 && errno == ENOENT)
        return no_interpreter(&head, path, err);
    return 0;
}
