/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

/* Measured: two pipes of output; with PMIx also a socket for PMI-1 and the library's connection. */
#define FILES_PLAIN 2u
#define FILES_PMIX 4u
#define FILES_BESIDE 24u /* loop, servers, /dev/null, the launcher */
/* The kernel's part of a process and the pages of the smallest program (measured: 200 KiB for
 * sleep). */
#define RANK_BYTES ((uint64_t)128 * 1024)
#define FILE_SIZE_MAX ((size_t)64 * 1024)
#define KIB 1024.0

struct room_files room_files(bool pmix, bool all_read, uint32_t neighbours)
{
    return (struct room_files){
        .each = (pmix ? FILES_PMIX : FILES_PLAIN) + (all_read ? 1 : 0),
        .beside = FILES_BESIDE + neighbours,
    };
}

uint64_t room_files_for(const struct room_files *files, uint64_t ranks)
{
    return ranks * files->each + files->beside;
}

/* Under the limits that all agents of the machine share. */
static uint64_t all_ranks(const struct room_need *need)
{
    return need->ranks + need->fellows;
}

/* ---- looking ---- */

static uint64_t left(const struct room_limit *of)
{
    if (of->limit == ROOM_NO_LIMIT)
        return ROOM_NO_LIMIT;
    return of->limit > of->used ? of->limit - of->used : 0;
}

/* This user's threads, as far as /proc shows them. */
static uint64_t count_threads(void)
{
    uint64_t threads = 0;
    cleanup_dir DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        char path[sizeof entry->d_name + 8];
        struct stat st;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "%s/task", entry->d_name);
        if (fstatat(dirfd(proc), path, &st, 0) == 0 && st.st_uid == getuid())
            threads += st.st_nlink > 2 ? st.st_nlink - 2 : 1; /* "." and "..", and each thread */
    }
    return threads;
}

/* Of all users: the fourth field of "0.10 0.20 0.30 2/345 678". */
static uint64_t all_threads(void)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (file_read(AT_FDCWD, "/proc/loadavg", FILE_SIZE_MAX, &text, NULL) < 0 || text.len == 0)
        return ROOM_NO_LIMIT;
    const char *slash = strchr(text.data, '/');
    return slash ? strtoull(slash + 1, NULL, 10) : ROOM_NO_LIMIT;
}

static void look_at_processes(const struct room_need *need, struct room_limit *processes)
{
    struct rlimit limit;
    if (getuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return; /* root has no limit */
    /* the user's are not more than those of all: usually that is the answer */
    uint64_t ranks = all_ranks(need);
    if (ranks <= limit.rlim_cur && all_threads() <= limit.rlim_cur - ranks)
        return;
    *processes = (struct room_limit){limit.rlim_cur, count_threads()};
}

static void look_at_pids(int dir, bool v2, void *arg)
{
    struct room_limit seen = {ROOM_NO_LIMIT, 0}, *least = arg;
    (void)v2;
    if (cgroup_read_number(dir, "pids.max", &seen.limit) &&
        cgroup_read_number(dir, "pids.current", &seen.used) && left(&seen) < left(least))
        *least = seen;
}

void room_look(const struct room_need *need, struct room *ret_room)
{
    struct rlimit limit;
    *ret_room = (struct room){
        .files = ROOM_NO_LIMIT,
        .processes = {ROOM_NO_LIMIT, 0},
        .pids = {ROOM_NO_LIMIT, 0},
    };
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY)
        ret_room->files = limit.rlim_max;
    look_at_processes(need, &ret_room->processes);
    cgroup_each_level("pids", look_at_pids, &ret_room->pids);
    cgroup_memory(&ret_room->memory.limit, &ret_room->memory.used);
}

/* ---- judging ---- */

static int refuse(const struct room_need *need, const char *why, struct drarun_error *err)
{
    uint64_t ranks = all_ranks(need);
    return error_kind(err, DRARUN_ERR_PREFLIGHT, EAGAIN, "%" PRIu64 " %s on this %s %s, or %s",
                      ranks, ranks == 1 ? "rank" : "ranks", need->fellows ? "machine" : "worker",
                      why, need->fellows ? "start fewer ranks" : "give it fewer ranks");
}

static int no_files(const struct room *room, const struct room_need *need, struct drarun_error *err)
{
    char beside[64] = "";
    if (need->running > 0)
        snprintf(beside, sizeof beside, " beside the %" PRIu64 " that run", need->running);
    return error_kind(err, DRARUN_ERR_PREFLIGHT, EAGAIN,
                      "%" PRIu64 " %s on this worker%s need %" PRIu64
                      " open files, and the limit is %" PRIu64
                      ": raise it (ulimit -n), or give it fewer ranks",
                      need->ranks, need->ranks == 1 ? "rank" : "ranks", beside,
                      room_files_for(&need->files, need->running + need->ranks), room->files);
}

static void format_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / KIB;
    size_t unit = 0;
    for (; value >= KIB && unit + 1 < ARRAY_LEN(units); unit++)
        value /= KIB;
    snprintf(text, size, "%.1f %s", value, units[unit]);
}

static int no_memory(const struct room_limit *memory, const struct room_need *need,
                     struct drarun_error *err)
{
    char why[256], needed[32], rest[32], limit[32];
    format_bytes(all_ranks(need) * RANK_BYTES, needed, sizeof needed);
    format_bytes(left(memory), rest, sizeof rest);
    format_bytes(memory->limit, limit, sizeof limit);
    snprintf(why, sizeof why,
             "need %s of memory even if they do nothing, and %s of the control group's %s are left "
             "(memory.max): raise it",
             needed, rest, limit);
    return refuse(need, why, err);
}

int room_check(const struct room *room, const struct room_need *need, struct drarun_error *err)
{
    char why[256];
    uint64_t ranks = all_ranks(need);
    if (room_files_for(&need->files, need->running + need->ranks) > room->files)
        return no_files(room, need, err);
    if (ranks > left(&room->processes)) {
        snprintf(why, sizeof why,
                 "are more than the user may start, %" PRIu64 " processes and threads, of which "
                 "%" PRIu64 " run: raise the limit (ulimit -u)",
                 room->processes.limit, room->processes.used);
        return refuse(need, why, err);
    }
    if (ranks > left(&room->pids)) {
        snprintf(why, sizeof why,
                 "are more than the control group may hold, %" PRIu64 " processes and threads, of "
                 "which %" PRIu64 " run: raise the limit (pids.max; of a pod: the kubelet's "
                 "podPidsLimit)",
                 room->pids.limit, room->pids.used);
        return refuse(need, why, err);
    }
    if (ranks > left(&room->memory) / RANK_BYTES)
        return no_memory(&room->memory, need, err);
    return 0;
}
