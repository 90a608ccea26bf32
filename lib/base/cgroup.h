/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the cgroup that this process is in: version 2 where its controller is there, else
 * version 1. */
#ifndef DRARUN_BASE_CGROUP_H
#define DRARUN_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 4096

/* A group of a process, as a line of /proc/PID/cgroup tells it (cgroups(7)). */
struct cgroup_place {
    bool v2;
    char hierarchy[64]; /* its folder where groups are mounted: "" (version 2), "/cpuset" */
    char group[CGROUP_PATH_MAX]; /* in that: "/kubepods/...", which a container may not see */
};

/* Finds the next line of such a file that names the controller; the line of version 2 names none
 * and stands for all. Returns what follows it, for the next call; NULL: there is none. table: may
 * be NULL. */
const char *cgroup_next_place(const char *table, const char *controller,
                              struct cgroup_place *ret_place);

/* Opens a file of the version 2 group, or of the version 1 group of a controller. A descriptor, or
 * -ENOENT when there is none. */
int cgroup_open(const char *controller, const char *v2_file, const char *v1_file);

/* Calls fn with the directory (O_PATH) of the group that this process is in and then with each one
 * above it, as far as they are mounted here; the files of the controller may be missing there. v2:
 * their names are those of version 2. */
typedef void (*cgroup_level_fn)(int dir, bool v2, void *arg);
void cgroup_each_level(const char *controller, cgroup_level_fn fn, void *arg);

/* A number of a file; false when it holds none ("max"), or there is none. */
bool cgroup_read_number(int dir, const char *file, uint64_t *ret_number);

/* Bytes of memory that the group may use, and uses; caches do not count as used. Of the group and
 * those above it that of which the least is left. ret_limit: UINT64_MAX where there is none. */
void cgroup_memory(uint64_t *ret_limit, uint64_t *ret_used);
/* Bytes of caches that the kernel reclaims before it kills a process, from memory.stat. Files of a
 * tmpfs and shared memory are caches there, too, but cannot be reclaimed, and do not count. */
uint64_t cgroup_parse_cache(const char *text, bool v2);

/* The first word of a file that has one name in both versions. 0 or -errno. */
int cgroup_read_word(const char *controller, const char *file, char *text, size_t size);

/* How many CPUs' time the group may use, rounded up; UINT32_MAX: no limit is known. */
uint32_t cgroup_cpu_quota(void);
/* The same from "QUOTA PERIOD" in microseconds, as in cpu.max; a quota of "max" or -1 is none. */
uint32_t cgroup_parse_quota(const char *text);

#endif
