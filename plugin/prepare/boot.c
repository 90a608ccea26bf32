/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

static const char path[] = "/proc/sys/kernel/random/boot_id";

int boot_id_read(char ret_id[BOOT_ID_MAX], struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    int rc = file_read(AT_FDCWD, path, BOOT_ID_MAX, &text, err);
    size_t length = text.data ? strcspn(text.data, "\n") : 0;
    if (rc == 0 && (length == 0 || length >= BOOT_ID_MAX))
        rc = error_set(err, EINVAL, "%s: expected a UUID", path);
    if (rc == 0)
        snprintf(ret_id, BOOT_ID_MAX, "%.*s", (int)length, text.data);
    buf_done(&text);
    return rc;
}
