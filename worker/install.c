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

#define AGENT_SIZE_MAX ((size_t)256 << 20) /* a build with sanitizers and its debug information */

static int read_self(struct buf *out, struct drarun_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    return file_read(AT_FDCWD, path, AGENT_SIZE_MAX, out, err);
}

int install_agent(const char *dir, struct drarun_error *err)
{
    struct buf self = BUF_INIT;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/drarun-worker", dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return error_kind(err, DRARUN_ERR_USAGE, ENAMETOOLONG, "--install %s: too long", dir);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return error_kind(err, DRARUN_ERR_USAGE, errno, "--install %s: %s", dir, strerror(errno));
    struct drarun_error own = {0};
    int rc = read_self(&self, &own);
    if (rc == 0)
        rc = file_write_atomic(path, self.data, self.len, 0755, &own);
    buf_done(&self);
    return rc < 0 ? error_kind(err, DRARUN_ERR_USAGE, -rc, "--install: %s", own.text) : 0;
}
