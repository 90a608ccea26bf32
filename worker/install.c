/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/install.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

#define PROGRAM_SIZE_MAX ((size_t)256 << 20) /* of a build with sanitizers */

/* The program of that name that lies beside this one; this one itself where it is moved. */
static int program_path(const char *name, char path[PATH_MAX], struct drarun_error *err)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n < 0)
        return error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    if (strcmp(name, INSTALL_SELF) == 0)
        return 0;
    size_t folder = (size_t)(strrchr(path, '/') + 1 - path);
    int rest = snprintf(path + folder, PATH_MAX - folder, "%s", name);
    return rest < 0 || (size_t)rest >= PATH_MAX - folder
               ? error_set(err, ENAMETOOLONG, "%s: too long", path)
               : 0;
}

int install_program(const char *name, const char *dir, struct drarun_error *err)
{
    struct buf program = BUF_INIT;
    char source[PATH_MAX], path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return error_kind(err, DRARUN_ERR_USAGE, ENAMETOOLONG, "--install %s: too long", dir);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return error_kind(err, DRARUN_ERR_USAGE, errno, "--install %s: %s", dir, strerror(errno));
    struct drarun_error own = {0};
    int rc = program_path(name, source, &own);
    if (rc == 0)
        rc = file_read(AT_FDCWD, source, PROGRAM_SIZE_MAX, &program, &own);
    if (rc == 0)
        rc = file_write_atomic(path, program.data, program.len, 0755, &own);
    buf_done(&program);
    return rc < 0 ? error_kind(err, DRARUN_ERR_USAGE, -rc, "--install: %s", own.text) : 0;
}
