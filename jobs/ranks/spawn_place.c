/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/spawn_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

uint32_t spawn_slots(uint32_t ranks, uint32_t cpus)
{
    return ranks > cpus ? ranks : cpus;
}

/* A name without a domain stands for the same with one. */
static bool same_host(const char *wanted, const char *name)
{
    size_t length = strcspn(wanted, ":"), own = strlen(name);
    if (length == own && strncmp(wanted, name, length) == 0)
        return true;
    size_t wanted_label = strcspn(wanted, ".:"), own_label = strcspn(name, ".");
    return wanted_label == own_label && strncmp(wanted, name, own_label) == 0 &&
           (wanted_label == length || own_label == own);
}

static bool may_run_on(const struct place_program *program, const struct place_worker *worker)
{
    if (worker->gone)
        return false;
    for (size_t i = 0; i < program->host_count; i++)
        if (same_host(program->hosts[i], worker->host) ||
            (worker->node && same_host(program->hosts[i], worker->node)))
            return true;
    return program->host_count == 0;
}

/* One program: how many go where. */
struct share {
    const struct place_worker *workers;
    uint32_t worker_count;
    uint32_t *used; /* by worker, with the programs before */
    uint32_t *take; /* by worker */
};

static uint32_t take_free(const struct share *share, const struct place_program *program,
                          uint32_t *ret_free)
{
    uint32_t left = program->count;
    *ret_free = 0;
    for (uint32_t w = 0; w < share->worker_count; w++) {
        const struct place_worker *worker = &share->workers[w];
        share->take[w] = 0;
        if (!may_run_on(program, worker) || share->used[w] >= worker->slots)
            continue;
        uint32_t room = worker->slots - share->used[w];
        *ret_free += room;
        share->take[w] = room < left ? room : left;
        left -= share->take[w];
    }
    return left;
}

static void take_more(const struct share *share, const struct place_program *program, uint32_t left,
                      uint32_t fit)
{
    uint32_t each = left / fit, rest = left % fit;
    for (uint32_t w = 0; w < share->worker_count; w++) {
        if (!may_run_on(program, &share->workers[w]))
            continue;
        share->take[w] += each + (rest > 0);
        rest -= rest > 0;
    }
}

static int refuse(const struct place_program *program, uint32_t fit, uint32_t room,
                  const char *cure, struct drarun_error *err)
{
    struct buf hosts = BUF_INIT;
    for (size_t i = 0; i < program->host_count; i++)
        buf_printf(&hosts, "%s%s", i > 0 ? "," : "", program->hosts[i]);
    const char *text = hosts.data ? hosts.data : "";
    int rc = fit == 0 && program->host_count > 0
                 ? error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                              "spawn: no worker of the job is on host %s", text)
             : fit == 0
                 ? error_kind(err, DRARUN_ERR_USAGE, ENOSPC, "spawn: no worker takes more ranks")
                 : error_kind(err, DRARUN_ERR_USAGE, ENOSPC,
                              "spawn: %u rank%s asked for, %u slot%s free%s%s: %s", program->count,
                              program->count == 1 ? " is" : "s are", room,
                              room == 1 ? " is" : "s are", text[0] ? " on " : "", text, cure);
    buf_done(&hosts);
    return rc;
}

static int place_program(const struct share *share, const struct place_program *program,
                         bool oversubscribe, const char *cure, struct drarun_error *err)
{
    uint32_t room = 0, fit = 0;
    uint32_t left = take_free(share, program, &room);
    for (uint32_t w = 0; w < share->worker_count; w++)
        fit += may_run_on(program, &share->workers[w]);
    if (fit == 0 || (left > 0 && !oversubscribe))
        return refuse(program, fit, room, cure, err);
    take_more(share, program, left, fit);
    for (uint32_t w = 0; w < share->worker_count; w++)
        share->used[w] += share->take[w];
    return 0;
}

static size_t add_blocks(const struct share *share, uint32_t app, uint32_t first,
                         struct rank_block *blocks)
{
    size_t count = 0;
    for (uint32_t w = 0; w < share->worker_count; w++) {
        if (share->take[w] == 0)
            continue;
        blocks[count++] = (struct rank_block){first, share->take[w], w, app};
        first += share->take[w];
    }
    return count;
}

static int check_counts(const struct place_program *programs, size_t count,
                        struct drarun_error *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += programs[i].count;
        if (programs[i].count == 0 || total > RANKMAP_RANKS_MAX)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "spawn: expected 1 to %u ranks",
                              RANKMAP_RANKS_MAX);
    }
    return count > 0 ? 0 : error_kind(err, DRARUN_ERR_USAGE, EINVAL, "spawn: no program to run");
}

int spawn_place(const struct place_worker *workers, uint32_t worker_count,
                const struct place_program *programs, size_t program_count, bool oversubscribe,
                const char *cure, struct rankmap *ret_map, struct drarun_error *err)
{
    int rc = check_counts(programs, program_count, err);
    if (rc < 0)
        return rc;
    cleanup_free uint32_t *used = calloc(worker_count + 1u, sizeof *used);
    cleanup_free uint32_t *take = calloc(worker_count + 1u, sizeof *take);
    cleanup_free struct rank_block *blocks =
        calloc(program_count * worker_count + 1, sizeof *blocks);
    if (!used || !take || !blocks)
        return error_set(err, ENOMEM, "spawn: out of memory");
    const struct share share = {workers, worker_count, used, take};
    for (uint32_t w = 0; w < worker_count; w++)
        used[w] = workers[w].used;
    size_t block_count = 0;
    uint32_t first = 0;
    for (size_t i = 0; i < program_count; i++) {
        rc = place_program(&share, &programs[i], oversubscribe, cure, err);
        if (rc < 0)
            return rc;
        block_count += add_blocks(&share, (uint32_t)i, first, blocks + block_count);
        first += programs[i].count;
    }
    return rankmap_from_blocks(blocks, block_count, worker_count, ret_map, err);
}
