/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/room.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/bench/result.h"

#define MEMINFO_MAX ((size_t)64 << 10)

/* "MemAvailable:    5000 kB" */
static double available(const char *meminfo)
{
    static const char field[] = "MemAvailable:";
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    uint64_t kib;
    if (file_read(AT_FDCWD, meminfo, MEMINFO_MAX, &text, NULL) < 0 || text.len == 0)
        return INFINITY;
    const char *at = strstr(text.data, field);
    return at && sscanf(at + strlen(field), "%" SCNu64, &kib) == 1 ? (double)kib * 1024 : INFINITY;
}

double room_of_machine(const char *meminfo)
{
    uint64_t limit, used;
    double machine = available(meminfo);
    cgroup_memory(&limit, &used);
    double group = limit == UINT64_MAX ? INFINITY : limit > used ? (double)(limit - used) : 0;
    return group < machine ? group : machine;
}

/* Ranks that take from the same memory as this one. */
static unsigned sharers(const struct room *all, unsigned ranks, unsigned rank)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ranks; i++)
        count += strcmp(all[i].host, all[rank].host) == 0;
    return count;
}

static int too_little(const struct room *of, unsigned rank, unsigned share,
                      const struct room_need *need, struct drarun_error *err)
{
    char each[24], together[24], has[24], of_host[64] = "";
    result_size_text((uint64_t)need->bytes, each, sizeof each);
    result_size_text((uint64_t)(need->bytes * share), together, sizeof together);
    result_size_text((uint64_t)of->bytes, has, sizeof has);
    if (share > 1)
        snprintf(of_host, sizeof of_host, ", %s for the %u ranks of this host", together, share);
    return error_kind(err, DRARUN_ERR_USAGE, ENOMEM,
                      "rank %u on %s: -e %zu needs %s of %s a rank%s, and %s are free: give a "
                      "smaller -e%s",
                      rank, of->host, need->max_bytes, each,
                      need->device ? "the device's memory" : "memory", of_host, has,
                      need->check ? ", or -c 0, which takes a third less" : "");
}

int room_check(const struct room *all, unsigned ranks, const struct room_need *need,
               struct drarun_error *err)
{
    for (unsigned i = 0; i < ranks; i++) {
        if (need->bytes * (need->device ? 1 : ranks) <= all[i].bytes)
            continue;
        unsigned share = need->device ? 1 : sharers(all, ranks, i);
        if (need->bytes * share > all[i].bytes)
            return too_little(&all[i], i, share, need, err);
    }
    return 0;
}
