/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/exec_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "worker/ranks/exec_reason.h"

/* What execvpe searches when there is no PATH: confstr(_CS_PATH) of glibc. */
#define DEFAULT_SEARCH "/bin:/usr/bin"

int exec_path_open_wd(const char *wd, int *ret_dir, struct drarun_error *err)
{
    if (!wd || !*wd) {
        *ret_dir = AT_FDCWD;
        return 0;
    }
    cleanup_close int dir = open(wd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* O_PATH opens what cannot be entered, too */
    if (dir >= 0 && faccessat(dir, ".", X_OK, AT_EACCESS) == 0) {
        *ret_dir = take_fd(&dir);
        return 0;
    }
    int code = errno;
    enum drarun_errkind kind = code == ENOENT || code == ENOTDIR ? DRARUN_ERR_NOT_FOUND
                               : code == EACCES                  ? DRARUN_ERR_NOT_EXECUTABLE
                                                                 : DRARUN_ERR_INFRASTRUCTURE;
    return error_kind(err, kind, code, "working directory %s: %s", wd, strerror(code));
}

static const char *search_of(char *const *env)
{
    for (; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return DEFAULT_SEARCH;
}

/* 0, or why execve would refuse the file itself. */
static int try_file(int dir, const char *path)
{
    struct stat st;
    if (faccessat(dir, path, X_OK, 0) < 0)
        return errno;
    /* a directory passes as X_OK too */
    if (fstatat(dir, path, &st, 0) < 0)
        return errno;
    return S_ISREG(st.st_mode) ? 0 : EACCES;
}

/* Errors after which execvpe goes on with the next directory. */
static bool is_elsewhere(int code)
{
    return code == ENOENT || code == ENOTDIR || code == ESTALE || code == ENODEV ||
           code == ETIMEDOUT || code == ENAMETOOLONG;
}

/* "train.py" and "./train.py" mean the same to many who type them. */
static int fail_unknown(int dir, const char *program, struct drarun_error *err)
{
    struct stat st;
    const char *ending = strrchr(program, '.'), *equals = strchr(program, '=');
    if (try_file(dir, program) == 0)
        return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT,
                          "no program %s in PATH; the one in the working directory is ./%s",
                          program, program);
    if (strpbrk(program, " \t|&;<>"))
        return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT,
                          "no program \"%s\" in PATH; give its words one by one, without quotes "
                          "around all of them, or a shell's line to sh -c",
                          program);
    if (equals && equals > program)
        return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT,
                          "no program %s in PATH; a variable is set with env %s PROGRAM", program,
                          program);
    if (fstatat(dir, program, &st, 0) < 0 || !S_ISREG(st.st_mode))
        return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT, "no program %s in PATH", program);
    bool python = ending && strcmp(ending, ".py") == 0,
         shell = ending && strcmp(ending, ".sh") == 0;
    if (python || shell)
        return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT,
                          "no program %s in PATH; start the one in the working directory with its "
                          "interpreter: %s %s",
                          program, python ? "python3" : "sh", program);
    return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT,
                      "no program %s in PATH; the file in the working directory is not marked "
                      "executable (chmod +x)",
                      program);
}

int exec_path_find(int dir, const char *program, char *const *env, bool here,
                   char ret_path[PATH_MAX], struct drarun_error *err)
{
    char path[PATH_MAX], refused[PATH_MAX] = "";
    if (!*program)
        return error_kind(err, DRARUN_ERR_NOT_FOUND, ENOENT, "the program's name is empty");
    if (strchr(program, '/')) {
        int code = try_file(dir, program);
        if (code != 0 || strlen(program) >= sizeof path)
            return exec_reason(dir, program, code ? code : ENAMETOOLONG, err);
        strcpy(ret_path, program); // NOLINT: the length was checked
        return 0;
    }
    const char *search = search_of(env);
    for (const char *at = search, *end; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ':');
        /* an empty entry is the working directory */
        int n = snprintf(path, sizeof path, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "./",
                         program);
        int code = n < (int)sizeof path ? try_file(dir, path) : ENAMETOOLONG;
        if (code == 0) {
            memcpy(ret_path, path, (size_t)n + 1);
            return 0;
        }
        if (!is_elsewhere(code) && !*refused)
            memcpy(refused, path, (size_t)n + 1);
    }
    if (here && try_file(dir, program) == 0) {
        snprintf(ret_path, PATH_MAX, "./%s", program); /* a file's name is shorter */
        return 0;
    }
    if (*refused)
        return exec_reason(dir, refused, EACCES, err);
    return fail_unknown(dir, program, err);
}
