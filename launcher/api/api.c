/* SPDX-License-Identifier: Apache-2.0 */
#include "drarun/api.h"

#include <stdlib.h>

#include "lib/base/error.h"

const char *drarun_version(void)
{
    return DRARUN_VERSION;
}

void drarun_free(void *text)
{
    free(text);
}

const char *drarun_error_kind_name(enum drarun_errkind kind)
{
    return error_kind_name(kind);
}

int drarun_exit_status(enum drarun_errkind kind)
{
    return error_exit_status(kind);
}
