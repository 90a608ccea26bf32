/* SPDX-License-Identifier: Apache-2.0 */
/* The half of cluster_api.h that drarun and drarun-remote have. */
#include "launcher/programs/cluster_api.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/program_find.h"

const struct cluster_api *cluster_api(void)
{
    return NULL;
}

int cluster_become(char *const argv[])
{
    char path[PATH_MAX];
    struct drarun_error err = {0};
    if (program_find("drarun-cluster", NULL, path, &err) == 0) {
        execv(path, argv);
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, errno, "cannot start %.300s: %s", path,
                   strerror(errno));
    }
    log_error("%s", err.text);
    return error_exit_status(err.kind);
}
