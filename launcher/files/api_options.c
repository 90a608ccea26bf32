/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/files/api_options.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"

int api_options(const void *given, void *ret_options, size_t size, struct drarun_error *err)
{
    const unsigned char *bytes = given;
    size_t theirs = 0;
    if (given)
        memcpy(&theirs, given, sizeof theirs);
    for (size_t i = size; i < theirs; i++)
        if (bytes[i])
            return error_kind(err, DRARUN_ERR_USAGE, E2BIG,
                              "an option is set that libdrarun " DRARUN_VERSION
                              " is too old to know");
    if (given && theirs < sizeof theirs)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "options of size %zu: initialize them with their _init()", theirs);
    memset(ret_options, 0, size);
    if (given)
        memcpy(ret_options, given, theirs < size ? theirs : size);
    return 0;
}
