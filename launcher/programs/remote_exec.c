/* SPDX-License-Identifier: Apache-2.0 */
/* The half of remote.h that drarun has. */
#include "launcher/programs/remote.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/program_find.h"

const struct remote_api *remote_api(void)
{
    return NULL;
}

void remote_setup(void) {}

int remote_become(char *const argv[], struct drarun_error *err)
{
    char path[PATH_MAX];
    int rc = program_find("drarun-remote", NULL, path, err);
    if (rc < 0)
        return rc;
    execv(path, argv);
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, errno, "cannot start %.300s: %s", path,
                      strerror(errno));
}
