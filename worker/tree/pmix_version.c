/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tree/pmix_version.h"

const char *pmix_version(void)
{
    return DRARUN_PMIX_VERSION;
}
