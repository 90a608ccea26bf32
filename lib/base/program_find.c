/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/program_find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* From bin to bin, from bin to libexec, and back. */
static const char *const places[] = {".", "../libexec/drarun", "../../bin"};

static int own_directory(char path[PATH_MAX], struct drarun_error *err)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n < 0)
        return error_set(err, errno, "cannot find our own program: /proc/self/exe: %s",
                         strerror(errno));
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

/* False with errno set. */
static bool is_program(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (!S_ISREG(st.st_mode)) {
        errno = EACCES; /* as execve says */
        return false;
    }
    return access(path, X_OK) == 0;
}

int program_find(const char *name, const char *variable, char path[PATH_MAX],
                 struct drarun_error *err)
{
    char dir[PATH_MAX];
    const char *given = variable ? getenv(variable) : NULL;
    if (given && given[0]) {
        if (snprintf(path, PATH_MAX, "%s", given) < PATH_MAX && is_program(path))
            return 0;
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "%s=%s: %s", variable, given,
                          strerror(errno));
    }
    int rc = own_directory(dir, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char tried[PATH_MAX];
        int n = snprintf(tried, sizeof tried, "%s/%s/%s", dir, places[i], name);
        if (n < PATH_MAX && is_program(tried) && realpath(tried, path))
            return 0;
    }
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ENOENT,
                      "%s is neither in %.200s nor in libexec/drarun beside it%s%s", name, dir,
                      variable ? ": install it, or set " : "", variable ? variable : "");
}
