/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define SYSFS_FILE_MAX (64u * 1024)

/* ---- CPU lists ---- */

/* A set of ids below CPUS_MAX. */
struct idset {
    uint8_t has[CPUS_MAX];
    size_t count;
};

static void idset_add(struct idset *set, uint32_t id)
{
    set->count += !set->has[id];
    set->has[id] = 1;
}

/* Digits at *p, which it moves past them; false when there are none or the id is too large. */
static bool parse_id(const char **p, uint32_t *ret_id)
{
    uint32_t id = 0;
    const char *start = *p;
    for (; isdigit((unsigned char)**p); (*p)++) {
        id = id * 10 + (uint32_t)(**p - '0');
        if (id >= CPUS_MAX)
            return false;
    }
    *ret_id = id;
    return *p != start;
}

/* "3" or "3-5" at *p. */
static bool parse_range(const char **p, struct idset *set)
{
    uint32_t low, high;
    if (!parse_id(p, &low))
        return false;
    high = low;
    if (**p == '-') {
        (*p)++;
        if (!parse_id(p, &high) || high < low)
            return false;
    }
    for (uint32_t id = low; id <= high; id++)
        idset_add(set, id);
    return true;
}

static int parse_set(const char *text, struct idset *set, struct drarun_error *err)
{
    const char *p = text, *part = text;
    memset(set, 0, sizeof *set);
    if (*p == '\0' || strcmp(p, "\n") == 0)
        return 0;
    for (;; part = ++p) {
        bool good = parse_range(&p, set);
        if (good && (*p == '\0' || strcmp(p, "\n") == 0))
            return 0;
        if (!good || *p != ',')
            return error_set(err, EINVAL,
                             "\"%.*s\" in a CPU list: expected ids below %u such as 0-3,8",
                             (int)strcspn(part, ",\n"), part, CPUS_MAX);
    }
}

int cpulist_parse(const char *text, uint32_t **ret_ids, size_t *ret_count, struct drarun_error *err)
{
    struct idset set;
    int rc = parse_set(text, &set, err);
    if (rc < 0)
        return rc;
    uint32_t *ids = set.count ? calloc(set.count, sizeof *ids) : NULL;
    if (set.count && !ids)
        return error_set(err, ENOMEM, "CPU list: out of memory");
    size_t count = 0;
    for (uint32_t id = 0; count < set.count && id < CPUS_MAX; id++)
        if (set.has[id])
            ids[count++] = id;
    *ret_ids = ids;
    *ret_count = count;
    return 0;
}

int cpulist_of_mask(const cpu_set_t *mask, size_t size, uint32_t **ret_ids, size_t *ret_count,
                    struct drarun_error *err)
{
    uint32_t *ids = calloc(8 * size + 1, sizeof *ids);
    size_t count = 0;
    if (!ids)
        return error_set(err, ENOMEM, "CPUs: out of memory");
    for (uint32_t id = 0; id < 8 * size; id++)
        if (CPU_ISSET_S(id, size, mask))
            ids[count++] = id;
    *ret_ids = ids;
    *ret_count = count;
    return 0;
}

int cpulist_of_process(pid_t pid, struct buf *out)
{
    cpu_set_t mask[CPUS_MAX / CPU_SETSIZE];
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    if (sched_getaffinity(pid, sizeof mask, mask) == 0 &&
        cpulist_of_mask(mask, sizeof mask, &ids, &count, NULL) < 0)
        return -ENOMEM;
    cpulist_format(ids, count, out);
    return out->failed ? -ENOMEM : 0;
}

void cpulist_format(const uint32_t *ids, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t last = i;
        while (last + 1 < count && ids[last + 1] == ids[last] + 1)
            last++;
        buf_printf(out, "%s%u", i ? "," : "", ids[i]);
        if (last > i)
            buf_printf(out, "-%u", ids[last]);
        i = last;
    }
}

/* ---- sysfs ---- */

/* The list in one file under root; the error names the file. */
static int read_list(int root, const char *path, uint32_t **ret_ids, size_t *ret_count,
                     struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    int rc = file_read(root, path, SYSFS_FILE_MAX, &text, err);
    if (rc == 0) {
        rc = cpulist_parse(text.data, ret_ids, ret_count, err);
        if (rc < 0)
            error_prefix(err, "%s", path);
    }
    buf_done(&text);
    return rc;
}

/* As read_list; a missing file is an empty list. */
static int read_list_if_there(int root, const char *path, uint32_t **ret_ids, size_t *ret_count,
                              struct drarun_error *err)
{
    struct drarun_error own = {0};
    int rc = read_list(root, path, ret_ids, ret_count, &own);
    if (rc == -ENOENT || rc == -ENOTDIR) {
        *ret_ids = NULL;
        *ret_count = 0;
        return 0;
    }
    if (rc < 0)
        error_set(err, -rc, "%s", own.text);
    return rc;
}

static bool usable(uint32_t id, const cpu_set_t *allowed, size_t size)
{
    return !allowed || CPU_ISSET_S(id, size, allowed);
}

static int read_online(int root, const cpu_set_t *allowed, size_t size, struct cpus *cpus,
                       struct drarun_error *err)
{
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    int rc = read_list(root, "sys/devices/system/cpu/online", &ids, &count, err);
    if ((rc == -ENOENT || rc == -ENOTDIR) && allowed) {
        error_clear(err); /* without /sys: what the kernel says by its system call */
        rc = cpulist_of_mask(allowed, size, &ids, &count, err);
    }
    if (rc < 0)
        return rc;
    cpus->list = calloc(count + 1, sizeof *cpus->list);
    if (!cpus->list)
        return error_set(err, ENOMEM, "CPUs: out of memory");
    for (size_t i = 0; i < count; i++)
        if (usable(ids[i], allowed, size))
            cpus->list[cpus->count++].id = ids[i];
    if (cpus->count == 0)
        return error_set(err, ENOENT, "no usable CPU among %zu online ones", count);
    return 0;
}

/* For now a core is called by the lowest id of its threads. */
static int read_core(int root, struct cpu *cpu, struct drarun_error *err)
{
    char path[80];
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             cpu->id);
    int rc = read_list_if_there(root, path, &ids, &count, err);
    if (rc == 0)
        cpu->core = count > 0 ? ids[0] : cpu->id;
    return rc;
}

static int read_node(int root, uint32_t node, struct cpus *cpus, struct drarun_error *err)
{
    char path[64];
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    snprintf(path, sizeof path, "sys/devices/system/node/node%u/cpulist", node);
    int rc = read_list_if_there(root, path, &ids, &count, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0, c = 0; i < count && c < cpus->count; i++) { /* both still ascend by id */
        while (c < cpus->count && cpus->list[c].id < ids[i])
            c++;
        if (c < cpus->count && cpus->list[c].id == ids[i])
            cpus->list[c].numa = node;
    }
    return 0;
}

static int read_nodes(int root, struct cpus *cpus, struct drarun_error *err)
{
    cleanup_free uint32_t *nodes = NULL;
    size_t count = 0;
    int rc = read_list_if_there(root, "sys/devices/system/node/online", &nodes, &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = read_node(root, nodes[i], cpus, err);
    return rc;
}

static int compare(const void *a, const void *b)
{
    const struct cpu *x = a, *y = b;
    if (x->numa != y->numa)
        return x->numa < y->numa ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts, renumbers the cores from 0 and counts. */
static void arrange(struct cpus *cpus)
{
    qsort(cpus->list, cpus->count, sizeof *cpus->list, compare);
    uint32_t core = 0, numa = 0;
    for (size_t i = 0; i < cpus->count; i++) {
        struct cpu *cpu = &cpus->list[i];
        bool new_core = i == 0 || cpu->numa != numa || cpu->core != core;
        core = cpu->core;
        numa = cpu->numa;
        cpus->cores += new_core;
        cpu->core = (uint32_t)cpus->cores - 1;
    }
}

static int read_all(int root, const cpu_set_t *allowed, size_t size, struct cpus *cpus,
                    struct drarun_error *err)
{
    int rc = read_online(root, allowed, size, cpus, err);
    for (size_t i = 0; rc == 0 && i < cpus->count; i++)
        rc = read_core(root, &cpus->list[i], err);
    if (rc == 0)
        rc = read_nodes(root, cpus, err);
    if (rc == 0)
        arrange(cpus);
    return rc;
}

int cpus_read(int rootfd, const cpu_set_t *allowed, size_t size, struct cpus *ret_cpus,
              struct drarun_error *err)
{
    cleanup_close int slash = -1;
    if (rootfd < 0) {
        rootfd = slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (slash < 0)
            return error_set(err, errno, "open /: %s", strerror(errno));
    }
    struct cpus cpus = {0};
    int rc = read_all(rootfd, allowed, size, &cpus, err);
    if (rc < 0)
        cpus_done(&cpus);
    else
        *ret_cpus = cpus;
    return rc;
}

void cpus_done(struct cpus *cpus)
{
    free(cpus->list);
    *cpus = (struct cpus){0};
}
