/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define MOUNT "/sys/fs/cgroup"
#define MEMBERSHIP_MAX ((size_t)64 * 1024)
#define NUMBERS_MAX ((size_t)64 * 1024) /* a file of numbers */

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

uint32_t cgroup_parse_quota(const char *text)
{
    long long quota = 0, period = 0;
    if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return UINT32_MAX;
    long long cpus = (quota - 1) / period + 1;
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

uint32_t cgroup_cpu_quota(void)
{
    char text[64], period[32];
    cleanup_close int fd = cgroup_open("cpu", "cpu.max", "cpu.cfs_quota_us");
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return UINT32_MAX;
    text[n] = '\0';
    if (!strchr(text, ' ')) { /* version 1: a file for each */
        if (cgroup_read_word("cpu", "cpu.cfs_period_us", period, sizeof period) < 0)
            return UINT32_MAX;
        text[strcspn(text, "\n")] = '\0';
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s", period);
    }
    return cgroup_parse_quota(text);
}

/* ---- the group and those above it ---- */

/* The directory of a group's level: 0 is the group itself. Empty when it is above the mount. */
static bool level_path(const char *hierarchy, const char *group, unsigned int level,
                       char path[PATH_MAX])
{
    size_t length = strcmp(group, "/") == 0 ? 0 : strlen(group);
    for (; level > 0; level--) {
        if (length == 0)
            return false;
        while (length > 0 && group[--length] != '/')
            ;
    }
    return snprintf(path, PATH_MAX, MOUNT "%s%.*s", hierarchy, (int)length, group) < PATH_MAX;
}

static int open_dir(const char *path)
{
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void walk(const char *hierarchy, const char *group, bool v2, cgroup_level_fn fn, void *arg)
{
    char path[PATH_MAX];
    for (unsigned int level = 0; level_path(hierarchy, group, level, path); level++) {
        cleanup_close int dir = open_dir(path);
        if (dir < 0)
            continue; /* a container without a group namespace: its own group is the mount's root */
        fn(dir, v2, arg);
    }
}

void cgroup_each_level(const char *controller, cgroup_level_fn fn, void *arg)
{
    CLEANUP(buf_done) struct buf table = BUF_INIT;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", MEMBERSHIP_MAX, &table, NULL) < 0 || !table.data)
        return;
    char *rest = NULL, hierarchy[64];
    for (char *line = strtok_r(table.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        bool v2 = *controllers == '\0';
        if (!v2 && !lists(controllers, controller))
            continue;
        snprintf(hierarchy, sizeof hierarchy, "%s%s", v2 ? "" : "/", v2 ? "" : controller);
        walk(hierarchy, group, v2, fn, arg);
    }
}

/* ---- memory ---- */

bool cgroup_read_number(int dir, const char *file, uint64_t *ret_number)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    char *end = NULL;
    if (file_read(dir, file, NUMBERS_MAX, &text, NULL) < 0 || text.len == 0)
        return false;
    *ret_number = strtoull(text.data, &end, 10);
    return end != text.data;
}

/* A line of a file: "total_cache 4096". */
static uint64_t read_field(int dir, const char *file, const char *field)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    size_t length = strlen(field);
    if (file_read(dir, file, NUMBERS_MAX, &text, NULL) < 0 || text.len == 0)
        return 0;
    for (const char *at = text.data; at; at = (at = strchr(at, '\n')) ? at + 1 : NULL)
        if (strncmp(at, field, length) == 0 && at[length] == ' ')
            return strtoull(at + length + 1, NULL, 10);
    return 0;
}

struct memory {
    uint64_t limit, used;
};

static uint64_t left(const struct memory *of)
{
    return of->limit > of->used ? of->limit - of->used : 0;
}

static void look_at_memory(int dir, bool v2, void *arg)
{
    struct memory seen = {0}, *least = arg;
    if (!cgroup_read_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &seen.limit) ||
        seen.limit >= (uint64_t)INT64_MAX / 2) /* version 1 says so that there is none */
        return;
    if (!cgroup_read_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &seen.used))
        return;
    uint64_t cache = read_field(dir, "memory.stat", v2 ? "file" : "total_cache");
    seen.used -= cache < seen.used ? cache : seen.used;
    if (left(&seen) < left(least))
        *least = seen;
}

void cgroup_memory(uint64_t *ret_limit, uint64_t *ret_used)
{
    struct memory least = {UINT64_MAX, 0};
    cgroup_each_level("memory", look_at_memory, &least);
    *ret_limit = least.limit;
    *ret_used = least.used;
}
