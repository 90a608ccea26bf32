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

static int not_open(const char *option, const char *name, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, errno, "%s %s: %s", option, name, strerror(errno));
}

int written_open(const char *option, const char *name, const char *mode, FILE **ret,
                 struct drarun_error *err)
{
    FILE *file = fopen(name, mode);
    if (!file)
        return not_open(option, name, err);
    *ret = file;
    return 0;
}

int written_open_new(const char *option, const char *name, char ret_name[WRITTEN_NAME], FILE **ret,
                     struct drarun_error *err)
{
    FILE *file;
    snprintf(ret_name, WRITTEN_NAME, "%s", name);
    for (unsigned i = 0; !(file = fopen(ret_name, "wxe")); i++) {
        if (errno != EEXIST || i == 10000)
            return not_open(option, ret_name, err);
        snprintf(ret_name, WRITTEN_NAME, "%s.%u", name, i);
    }
    *ret = file;
    return 0;
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
