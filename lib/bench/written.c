/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/written.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"

static int failed(const char *name, struct drarun_error *err)
{
    int code = errno ? errno : EIO;
    return error_set(err, code, "%s: %s: the results in it are not complete", name, strerror(code));
}

int written(FILE *out, const char *name, struct drarun_error *err)
{
    errno = 0;
    return fflush(out) == 0 && !ferror(out) ? 0 : failed(name, err);
}

int written_close(FILE **out, const char *name, struct drarun_error *err)
{
    int rc = *out ? written(*out, name, err) : 0;
    if (*out && fclose(*out) != 0 && rc == 0)
        rc = failed(name, err);
    *out = NULL;
    return rc;
}
