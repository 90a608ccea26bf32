/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

int session_make(const char *path, struct drarun_error *err)
{
    /* mkdir follows no link at its last component and fails on whatever is there, so the directory
     * is ours; a umask can only take bits away */
    if (mkdir(path, 0700) < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno,
                          "make the session directory %s: %s", path, strerror(errno));
    return 0;
}

int session_remove(const char *path)
{
    return tree_remove(AT_FDCWD, path);
}
