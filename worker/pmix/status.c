/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "lib/base/error.h"
#include "worker/pmix/host_private.h"

static int to_errno(pmix_status_t status)
{
    switch (status) {
    case PMIX_ERR_NOMEM:
    case PMIX_ERR_OUT_OF_RESOURCE:
        return ENOMEM;
    case PMIX_ERR_BAD_PARAM:
        return EINVAL;
    case PMIX_ERR_NOT_FOUND:
        return ENOENT;
    case PMIX_ERR_TIMEOUT:
        return ETIMEDOUT;
    case PMIX_ERR_NOT_SUPPORTED:
        return ENOTSUP;
    default:
        return EPROTO;
    }
}

int pmix_error(struct drarun_error *err, pmix_status_t status, const char *what)
{
    return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, to_errno(status), "%s: %s", what,
                      PMIx_Error_string(status));
}
