/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static int read_value(int fd, int *ret)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n < 0)
        return -errno;
    *ret = atoi(text);
    return 0;
}

int sysctl_ensure(const char *family, const char *name, int value, struct drarun_error *err)
{
    char path[160], text[16];
    int now = 0;
    snprintf(path, sizeof path, "/proc/sys/net/%s/%s", family, name);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (read_value(fd, &now) == 0 && now == value)
        return 0;
    close_fd(&fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    int n = snprintf(text, sizeof text, "%d\n", value);
    if (write(fd, text, (size_t)n) < 0)
        return error_set(err, errno, "%s: write %d: %s", path, value, strerror(errno));
    int rc = read_value(fd, &now);
    if (rc < 0)
        return error_set(err, -rc, "%s: %s", path, strerror(-rc));
    return now == value ? 0 : error_set(err, EIO, "%s: wrote %d and read %d", path, value, now);
}

int sysctl_ensure_device(const char *family, const char *device, const char *name, int value,
                         struct drarun_error *err)
{
    char whole[100];
    snprintf(whole, sizeof whole, "conf/%s/%s", device, name);
    return sysctl_ensure(family, whole, value, err);
}
