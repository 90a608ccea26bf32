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

/* list: words with "," between, length bytes. */
static bool lists(const char *list, size_t length, const char *name)
{
    size_t size = strlen(name);
    for (size_t at = 0, word; at < length; at += word + 1) {
        const char *comma = memchr(list + at, ',', length - at);
        word = comma ? (size_t)(comma - list) - at : length - at;
        if (word == size && memcmp(list + at, name, size) == 0)
            return true;
    }
    return false;
}

/* "hierarchy-ID:controller-list:cgroup-path"; version 2 is "0::". */
static bool read_line(const char *line, size_t length, const char *controller,
                      struct cgroup_place *place)
{
    const char *end = line + length;
    const char *list = memchr(line, ':', length);
    const char *group = list ? memchr(list + 1, ':', (size_t)(end - list) - 1) : NULL;
    if (!group)
        return false;
    list++;
    place->v2 = list == group;
    size_t size = (size_t)(end - ++group);
    if ((!place->v2 && !lists(list, (size_t)(group - list) - 1, controller)) ||
        size >= sizeof place->group)
        return false;
    snprintf(place->hierarchy, sizeof place->hierarchy, "%s%s", place->v2 ? "" : "/",
             place->v2 ? "" : controller);
    memcpy(place->group, group, size);
    place->group[size] = '\0';
    return true;
}

const char *cgroup_next_place(const char *table, const char *controller,
                              struct cgroup_place *ret_place)
{
    for (const char *line = table; line && *line;) {
        size_t length = strcspn(line, "\n");
        const char *next = line + length + (line[length] == '\n');
        if (read_line(line, length, controller, ret_place))
            return next;
        line = next;
    }
    return NULL;
}

int cgroup_open(const char *controller, const char *v2_file, const char *v1_file)
{
    CLEANUP(buf_done) struct buf table = BUF_INIT;
    struct cgroup_place place;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", MEMBERSHIP_MAX, &table, NULL) < 0)
        return -ENOENT;
    for (const char *at = table.data; (at = cgroup_next_place(at, controller, &place));) {
        int fd = open_in(place.hierarchy, place.group, place.v2 ? v2_file : v1_file);
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

static void walk(const struct cgroup_place *place, cgroup_level_fn fn, void *arg)
{
    char path[PATH_MAX];
    for (unsigned int level = 0; level_path(place->hierarchy, place->group, level, path); level++) {
        cleanup_close int dir = open_dir(path);
        if (dir < 0)
            continue; /* a container without a group namespace: its own group is the mount's root */
        fn(dir, place->v2, arg);
    }
}

void cgroup_each_level(const char *controller, cgroup_level_fn fn, void *arg)
{
    CLEANUP(buf_done) struct buf table = BUF_INIT;
    struct cgroup_place place;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", MEMBERSHIP_MAX, &table, NULL) < 0)
        return;
    for (const char *at = table.data; (at = cgroup_next_place(at, controller, &place));)
        walk(&place, fn, arg);
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
static uint64_t parse_field(const char *text, const char *field)
{
    size_t length = strlen(field);
    for (const char *at = text; at; at = (at = strchr(at, '\n')) ? at + 1 : NULL)
        if (strncmp(at, field, length) == 0 && at[length] == ' ')
            return strtoull(at + length + 1, NULL, 10);
    return 0;
}

uint64_t cgroup_parse_cache(const char *text, bool v2)
{
    uint64_t cache = parse_field(text, v2 ? "file" : "total_cache");
    uint64_t shared = parse_field(text, v2 ? "shmem" : "total_shmem");
    return cache > shared ? cache - shared : 0;
}

static uint64_t read_cache(int dir, bool v2)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (file_read(dir, "memory.stat", NUMBERS_MAX, &text, NULL) < 0 || text.len == 0)
        return 0;
    return cgroup_parse_cache(text.data, v2);
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
    uint64_t cache = read_cache(dir, v2);
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
