/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/pod_processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define CGROUP_MAX ((size_t)16 << 10) /* version 1: a dozen lines of a path each */

static ssize_t read_cgroup(int proc, const char *process, char text[CGROUP_MAX])
{
    char path[300];
    size_t used = 0;
    ssize_t n = 0;
    snprintf(path, sizeof path, "%s/cgroup", process);
    cleanup_close int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (used < CGROUP_MAX - 1 && (n = read(fd, text + used, CGROUP_MAX - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    return n < 0 ? -errno : (ssize_t)used;
}

int pod_processes(const char *proc, const char *uid, struct drarun_error *err)
{
    char as_is[80], of_systemd[80], text[CGROUP_MAX];
    cleanup_dir DIR *dir = opendir(proc);
    struct dirent *entry;
    snprintf(as_is, sizeof as_is, "pod%s", uid);
    snprintf(of_systemd, sizeof of_systemd, "pod%s", uid);
    for (char *p = of_systemd; *p; p++)
        if (*p == '-')
            *p = '_';
    if (!dir)
        return error_set(err, errno, "%s: %s", proc, strerror(errno));
    while ((entry = readdir(dir))) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
            continue;
        ssize_t n = read_cgroup(dirfd(dir), entry->d_name, text);
        if (n < 0 && n != -ENOENT && n != -ESRCH)
            return error_set(err, (int)-n, "%s/%s/cgroup: %s", proc, entry->d_name,
                             strerror((int)-n));
        if (n > 0 && (strstr(text, as_is) || strstr(text, of_systemd)))
            return 1;
    }
    return 0;
}
