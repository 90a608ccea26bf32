/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lib/base/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"

/* Version 1 has a number above this one where there is no limit. */
#define MEMORY_UNLIMITED ((uint64_t)INT64_MAX / 2)

/* "Max locked memory         8388608              8388608              bytes" */
static void read_memlock(struct facts_reader *r)
{
    char text[ROOT_TEXT_MAX];
    struct topo_limits *limits = &r->host->limits;
    if (root_read(r->root, "proc/self/limits", text, sizeof text) <= 0)
        return;
    const char *line = strstr(text, "Max locked memory");
    if (!line)
        return;
    line += strlen("Max locked memory");
    line += strspn(line, " ");
    char *end;
    limits->memlock = strtoull(line, &end, 10);
    bool unlimited = strncmp(line, "unlimited", 9) == 0;
    if (unlimited)
        limits->memlock = UINT64_MAX;
    limits->memlock_known = unlimited || (end != line && *end == ' ') ? TOPO_YES : TOPO_UNKNOWN;
}

/* The value of a line "NAME:\tVALUE" of proc/self/status; NULL: no such line. */
static const char *status_value(const char *text, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + strspn(line + len + 1, " \t");
    }
    return NULL;
}

static void read_status(struct facts_reader *r)
{
    char text[ROOT_TEXT_MAX];
    struct topo_limits *limits = &r->host->limits;
    limits->uid = -1;
    if (root_read(r->root, "proc/self/status", text, sizeof text) <= 0)
        return;
    const char *caps = status_value(text, "CapEff"), *uids = status_value(text, "Uid");
    if (caps)
        limits->ipc_lock =
            strtoull(caps, NULL, 16) & (UINT64_C(1) << CAP_IPC_LOCK) ? TOPO_YES : TOPO_NO;
    unsigned real, effective;
    if (uids && sscanf(uids, "%u %u", &real, &effective) == 2)
        limits->uid = effective;
}

/* Only where it is a mount of its own: the one of a captured tree would tell of this machine. */
static void read_shm(struct facts_reader *r)
{
    struct stat dev, shm;
    struct statfs fs;
    struct topo_limits *limits = &r->host->limits;
    cleanup_close int above = root_open(r->root, "dev", O_PATH | O_DIRECTORY, NULL);
    cleanup_close int fd = root_open(r->root, "dev/shm", O_PATH | O_DIRECTORY, NULL);
    if (above < 0 || fd < 0 || fstat(above, &dev) < 0 || fstat(fd, &shm) < 0 ||
        dev.st_dev == shm.st_dev || fstatfs(fd, &fs) < 0)
        return;
    limits->shm_mounted = TOPO_YES;
    limits->shm_memory = fs.f_type == TMPFS_MAGIC;
    limits->shm_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    limits->shm_free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
}

static bool parse_bytes(const char *text, uint64_t *ret_value)
{
    char *end;
    if (strspn(text, "0123456789") == 0)
        return false;
    *ret_value = strtoull(text, &end, 10);
    return *end == '\0';
}

struct cgroup_file {
    const char *controller, *v2, *v1; /* its name in each version */
    bool of_cpus;                     /* a list of them, which may be long */
};

/* An empty file tells nothing. */
static int read_below(struct facts_reader *r, const struct cgroup_file *file,
                      const struct cgroup_place *place, const char *group, char **ret_text)
{
    char path[CGROUP_PATH_MAX + 128];
    snprintf(path, sizeof path, "sys/fs/cgroup%s%s/%s", place->hierarchy, group,
             place->v2 ? file->v2 : file->v1);
    int rc = (file->of_cpus ? facts_cpulist : facts_text)(r, path, ret_text);
    if (*ret_text && !**ret_text)
        free(TAKE_PTR(*ret_text));
    return rc;
}

/* A file of our group; a container's is the root of what it sees. table: proc/self/cgroup. */
static int read_cgroup_file(struct facts_reader *r, const char *table,
                            const struct cgroup_file *file, char **ret_text)
{
    struct cgroup_place place;
    int rc = 0;
    for (const char *at = table; (at = cgroup_next_place(at, file->controller, &place));) {
        if (rc == 0 && !*ret_text)
            rc = read_below(r, file, &place, place.group, ret_text);
        if (rc == 0 && !*ret_text)
            rc = read_below(r, file, &place, "", ret_text);
    }
    return rc;
}

/* "150000 100000": microseconds of CPU time in each period of so many; "max 100000", "-1 100000".
 */
static void parse_cpu_max(const char *text, struct topo_limits *limits)
{
    uint64_t quota, period;
    if (strncmp(text, "max", 3) == 0 || text[0] == '-') {
        limits->cpu_limited = TOPO_NO;
    } else if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0 &&
               quota < UINT32_MAX) {
        limits->cpu_limited = TOPO_YES;
        limits->cpu_millis = (uint32_t)(quota * 1000 / period);
    }
}

static int read_cpu_max(struct facts_reader *r, const char *table)
{
    static const struct cgroup_file both = {"cpu", "cpu.max", "cpu.cfs_quota_us", false};
    static const struct cgroup_file second = {"cpu", "cpu.max", "cpu.cfs_period_us", false};
    cleanup_free char *text = NULL, *period = NULL;
    char line[64];
    int rc = read_cgroup_file(r, table, &both, &text);
    if (rc == 0 && text && !strchr(text, ' ')) { /* version 1: a file for each */
        rc = read_cgroup_file(r, table, &second, &period);
        snprintf(line, sizeof line, "%.20s %.20s", text, period ? period : "");
        parse_cpu_max(line, &r->host->limits);
    } else if (rc == 0 && text) {
        parse_cpu_max(text, &r->host->limits);
    }
    return rc;
}

static int read_memory_max(struct facts_reader *r, const char *table)
{
    static const struct cgroup_file file = {"memory", "memory.max", "memory.limit_in_bytes", false};
    struct topo_limits *limits = &r->host->limits;
    cleanup_free char *text = NULL;
    uint64_t bytes = 0;
    int rc = read_cgroup_file(r, table, &file, &text);
    if (!text)
        return rc;
    bool known = parse_bytes(text, &bytes);
    if (strcmp(text, "max") == 0 || (known && bytes >= MEMORY_UNLIMITED)) {
        limits->memory_limited = TOPO_NO;
    } else if (known) {
        limits->memory_limited = TOPO_YES;
        limits->memory_max = bytes;
    }
    return rc;
}

static int read_cgroup(struct facts_reader *r)
{
    /* version 1 has the second one where the first is missing, before Linux 3.17 */
    static const struct cgroup_file cpusets[] = {
        {"cpuset", "cpuset.cpus.effective", "cpuset.effective_cpus", true},
        {"cpuset", "cpuset.cpus.effective", "cpuset.cpus", true},
    };
    char table[ROOT_TEXT_MAX * 4]; /* version 1 has a line for each hierarchy */
    int rc = 0;
    if (root_read(r->root, "proc/self/cgroup", table, sizeof table) <= 0)
        snprintf(table, sizeof table, "0::/");
    for (size_t i = 0; rc == 0 && !r->host->limits.cpuset && i < ARRAY_LEN(cpusets); i++)
        rc = read_cgroup_file(r, table, &cpusets[i], &r->host->limits.cpuset);
    if (rc == 0)
        rc = read_memory_max(r, table);
    return rc == 0 ? read_cpu_max(r, table) : rc;
}

int read_limits(struct facts_reader *r)
{
    read_memlock(r);
    read_status(r);
    read_shm(r);
    return read_cgroup(r);
}

/* ---- /dev ---- */

/* N of "nvidiaN"; nvidiactl and nvidia-uvm are none. */
static bool numbered(const char *name, const char *prefix, uint32_t *ret_number)
{
    size_t len = strlen(prefix);
    const char *digits = name + len;
    if (strncmp(name, prefix, len) != 0 || *digits == '\0' || strlen(digits) > 6 ||
        strspn(digits, "0123456789") != strlen(digits))
        return false;
    *ret_number = (uint32_t)strtoul(digits, NULL, 10);
    return true;
}

static int read_imex(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    struct topo_host *host = r->host;
    int rc = facts_list(r, "dev/nvidia-caps-imex-channels", &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        uint32_t number, *item;
        if (!numbered(names.items[i], "channel", &number))
            continue;
        item = facts_grow(r, &host->imex_channels, &host->imex_count, sizeof *item);
        if (!item)
            rc = -ENOMEM;
        else
            *item = number;
    }
    strlist_done(&names);
    return rc;
}

int read_nodes(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    struct topo_host *host = r->host;
    int rc = facts_list(r, "dev", &names);
    uint32_t number;
    for (size_t i = 0; i < names.count; i++)
        host->nvidia_nodes += numbered(names.items[i], "nvidia", &number);
    strlist_done(&names);
    cleanup_close int dir = root_open(r->root, "dev", O_PATH | O_DIRECTORY, NULL);
    cleanup_close int cm = root_open(r->root, "dev/infiniband/rdma_cm", O_PATH, NULL);
    if (dir >= 0)
        host->rdma_cm = cm >= 0 ? TOPO_YES : TOPO_NO;
    return rc < 0 ? rc : read_imex(r);
}
