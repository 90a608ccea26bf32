/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/heartbeat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/number.h"

#define LINE_SIZE 21 /* digits of one length, so that each line replaces the one before */

int heartbeat_file_beat(int fd)
{
    char line[LINE_SIZE + 1];
    snprintf(line, sizeof line, "%020" PRId64 "\n", clock_ms());
    ssize_t n = pwrite(fd, line, LINE_SIZE, 0);
    return n == LINE_SIZE ? 0 : n < 0 ? -errno : -EIO;
}

int heartbeat_file_open(const char *path, struct drarun_error *err)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int rc = fd < 0 ? -errno : heartbeat_file_beat(fd);
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "heartbeat %s: %s", path,
                          strerror(-rc));
    return take_fd(&fd);
}

int heartbeat_file_check(const char *path, int64_t now_ms, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    int64_t beat = 0;
    int rc = file_read(AT_FDCWD, path, LINE_SIZE, &text, err);
    if (rc == 0 && text.len == LINE_SIZE)
        text.data[LINE_SIZE - 1] = '\0';
    if (rc == 0 && (text.len != LINE_SIZE ||
                    number_parse("heartbeat", text.data, 0, INT64_MAX, &beat, NULL) < 0))
        rc = error_set(err, EINVAL, "heartbeat %s: expected a number of %d digits", path,
                       LINE_SIZE - 1);
    buf_done(&text);
    if (rc == 0 && now_ms - beat >= HEARTBEAT_FILE_STALE_MS)
        rc = error_set(err, ETIME,
                       "heartbeat %s: last written %" PRId64 " s ago, expected less than %d s: its "
                       "process hangs or has ended",
                       path, (now_ms - beat) / 1000, HEARTBEAT_FILE_STALE_MS / 1000);
    if (rc < 0 && err)
        err->kind = DRARUN_ERR_INFRASTRUCTURE;
    return rc;
}
