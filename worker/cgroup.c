/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define MOUNT "/sys/fs/cgroup"
#define MEMBERSHIP_MAX ((size_t)64 * 1024)

/* The group's path by the membership table, then the mount's own root: in a container without a
 * cgroup namespace the table shows the host's path, of which the mount holds only the end. */
static int open_in(const char *hierarchy, const char *group, const char *file)
{
    char path[PATH_MAX];
    const char *const groups[] = {group, ""};
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        int n = snprintf(path, sizeof path, MOUNT "%s%s/%s", hierarchy, groups[i], file);
        int fd = n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd >= 0)
            return fd;
    }
    return -ENOENT;
}

static bool lists(const char *controllers, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = controllers; (at = strstr(at, name)); at += length)
        if ((at == controllers || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* cgroups(7), /proc/PID/cgroup: "hierarchy-ID:controller-list:cgroup-path"; version 2 is "0::". */
static int open_by_line(char *line, const char *controller, const char *v2_file,
                        const char *v1_file)
{
    char hierarchy[64];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return -ENOENT;
    *group++ = '\0';
    controllers++;
    if (*controllers == '\0')
        return open_in("", group, v2_file);
    if (!lists(controllers, controller))
        return -ENOENT;
    snprintf(hierarchy, sizeof hierarchy, "/%s", controller);
    return open_in(hierarchy, group, v1_file);
}

int cgroup_open(const char *controller, const char *v2_file, const char *v1_file)
{
    CLEANUP(buf_done) struct buf table = BUF_INIT;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", MEMBERSHIP_MAX, &table, NULL) < 0)
        return -ENOENT;
    char *rest = NULL;
    for (char *line = strtok_r(table.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int fd = open_by_line(line, controller, v2_file, v1_file);
        if (fd >= 0)
            return fd;
    }
    return -ENOENT;
}

int cgroup_read_word(const char *controller, const char *file, char *text, size_t size)
{
    cleanup_close int fd = cgroup_open(controller, file, file);
    if (fd < 0)
        return fd;
    ssize_t n = read(fd, text, size - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    text[strcspn(text, " \n")] = '\0';
    return 0;
}
