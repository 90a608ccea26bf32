/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/ranks/rankmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* ---- building ---- */

void rankmap_done(struct rankmap *map)
{
    free(map->blocks);
    free(map->local_sizes);
    free(map->local_firsts);
    free(map->app_firsts);
    free(map->by_worker);
    free(map->worker_heads);
    *map = (struct rankmap){0};
}

DEFINE_CLEANUP(struct rankmap, rankmap_done)

static bool allocate_index(struct rankmap *map)
{
    map->local_sizes = calloc(map->workers, sizeof *map->local_sizes);
    map->local_firsts = calloc(map->block_count, sizeof *map->local_firsts);
    map->app_firsts = calloc((size_t)map->apps + 1, sizeof *map->app_firsts);
    map->by_worker = calloc(map->block_count, sizeof *map->by_worker);
    map->worker_heads = calloc((size_t)map->workers + 1, sizeof *map->worker_heads);
    return map->local_sizes && map->local_firsts && map->app_firsts && map->by_worker &&
           map->worker_heads;
}

/* A counting sort of the blocks by worker; stable, so a worker's blocks stay in rank order. */
static void sort_by_worker(struct rankmap *map)
{
    uint32_t *heads = map->worker_heads;
    for (size_t b = 0; b < map->block_count; b++)
        heads[map->blocks[b].worker + 1]++;
    for (uint32_t w = 0; w < map->workers; w++)
        heads[w + 1] += heads[w];
    for (size_t b = 0; b < map->block_count; b++)
        map->by_worker[heads[map->blocks[b].worker]++] = (uint32_t)b;
    /* each head now points at its successor's start: shift them back */
    memmove(heads + 1, heads, map->workers * sizeof *heads);
    heads[0] = 0;
}

/* Fills what is derived from blocks, which are in order and in range. */
static int index_blocks(struct rankmap *map, struct drarun_error *err)
{
    const struct rank_block *last = &map->blocks[map->block_count - 1];
    map->ranks = last->first + last->count;
    map->apps = last->app + 1;
    if (!allocate_index(map))
        return error_set(err, ENOMEM, "rank map: out of memory");
    for (size_t b = map->block_count; b-- > 0;) /* downwards: the first block of a program stays */
        map->app_firsts[map->blocks[b].app] = map->blocks[b].first;
    map->app_firsts[map->apps] = map->ranks;
    for (size_t b = 0; b < map->block_count; b++) {
        const struct rank_block *block = &map->blocks[b];
        map->local_firsts[b] = map->local_sizes[block->worker];
        map->local_sizes[block->worker] += block->count;
    }
    sort_by_worker(map);
    return 0;
}

static int check_workers(uint32_t workers, struct drarun_error *err)
{
    if (workers == 0 || workers > RANKMAP_WORKERS_MAX)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "expected 1 to %u workers, got %u",
                          RANKMAP_WORKERS_MAX, workers);
    return 0;
}

static int check_counts(const uint32_t *counts, size_t apps, uint32_t *ret_total,
                        struct drarun_error *err)
{
    uint64_t total = 0;
    if (apps == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "no program to run");
    for (size_t a = 0; a < apps; a++) {
        if (counts[a] == 0)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "program %zu has no ranks", a + 1);
        total += counts[a];
        if (total > RANKMAP_RANKS_MAX)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "more than %u ranks",
                              RANKMAP_RANKS_MAX);
    }
    *ret_total = (uint32_t)total;
    return 0;
}

/* How many ranks the worker takes while `left` are still without one. */
static uint32_t share(uint32_t total, uint32_t workers, uint32_t per_worker, uint32_t worker,
                      uint32_t left)
{
    uint32_t size = per_worker ? per_worker : total / workers + (worker < total % workers);
    return size < left ? size : left;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* One block at most for each program and each worker: the blocks end where either does. */
static void fill_blocks(struct rankmap *map, const uint32_t *counts, uint32_t total,
                        uint32_t per_worker, const uint32_t *order)
{
    uint32_t worker = 0, app = 0, first = 0;
    uint32_t room = share(total, map->workers, per_worker, 0, total);
    uint32_t wanted = counts[0];
    for (;;) {
        uint32_t count = min_u32(room, wanted);
        map->blocks[map->block_count++] =
            (struct rank_block){first, count, order ? order[worker] : worker, app};
        first += count;
        room -= count;
        wanted -= count;
        if (first == total)
            return;
        if (wanted == 0)
            wanted = counts[++app];
        if (room == 0) {
            worker++;
            room = share(total, map->workers, per_worker, worker, total - first);
        }
    }
}

int rankmap_build(const uint32_t *counts, size_t apps, uint32_t workers, uint32_t per_worker,
                  struct rankmap *ret_map, struct drarun_error *err)
{
    return rankmap_build_ordered(counts, apps, workers, per_worker, NULL, ret_map, err);
}

int rankmap_build_ordered(const uint32_t *counts, size_t apps, uint32_t workers,
                          uint32_t per_worker, const uint32_t *order, struct rankmap *ret_map,
                          struct drarun_error *err)
{
    uint32_t total = 0;
    int rc = check_workers(workers, err);
    if (rc == 0)
        rc = check_counts(counts, apps, &total, err);
    if (rc < 0)
        return rc;
    if (per_worker > 0 && (uint64_t)per_worker * workers < total)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%u ranks do not fit on %u worker%s with %u rank%s each: they need %u on "
                          "each worker, or more workers",
                          total, workers, workers == 1 ? "" : "s", per_worker,
                          per_worker == 1 ? "" : "s", (total - 1) / workers + 1);
    struct rankmap map = {.workers = workers};
    CLEANUP(rankmap_donep) struct rankmap *undo = &map;
    map.blocks = calloc(apps + min_u32(workers, total), sizeof *map.blocks);
    if (!map.blocks)
        return error_set(err, ENOMEM, "rank map: out of memory");
    fill_blocks(&map, counts, total, per_worker, order);
    rc = index_blocks(&map, err);
    if (rc < 0)
        return rc;
    undo = NULL;
    *ret_map = map;
    return 0;
}

static int check_parts(const struct rank_part *parts, size_t count, uint32_t *ret_workers,
                       struct drarun_error *err)
{
    uint64_t ranks = 0, workers = 0;
    for (size_t p = 0; p < count; p++) {
        if (parts[p].ranks == 0 || parts[p].workers == 0)
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "program %zu has no %s", p + 1,
                              parts[p].ranks == 0 ? "ranks" : "workers");
        ranks += parts[p].ranks;
        workers += parts[p].workers;
    }
    if (ranks > RANKMAP_RANKS_MAX)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "more than %u ranks", RANKMAP_RANKS_MAX);
    *ret_workers = workers < UINT32_MAX ? (uint32_t)workers : UINT32_MAX;
    return check_workers(*ret_workers, err);
}

int rankmap_build_parts(const struct rank_part *parts, size_t count, const uint32_t *order,
                        struct rankmap *ret_map, struct drarun_error *err)
{
    struct rankmap map = {0};
    uint32_t first = 0, before = 0;
    int rc = count > 0 ? check_parts(parts, count, &map.workers, err)
                       : error_kind(err, DRARUN_ERR_USAGE, EINVAL, "no program to run");
    if (rc < 0)
        return rc;
    CLEANUP(rankmap_donep) struct rankmap *undo = &map;
    map.blocks = calloc(map.workers, sizeof *map.blocks);
    if (!map.blocks)
        return error_set(err, ENOMEM, "rank map: out of memory");
    for (size_t p = 0; p < count; before += parts[p++].workers) {
        uint32_t left = parts[p].ranks;
        for (uint32_t w = 0; w < parts[p].workers && left > 0; w++) {
            uint32_t size = share(parts[p].ranks, parts[p].workers, 0, w, left);
            uint32_t worker = order ? order[before + w] : before + w;
            map.blocks[map.block_count++] = (struct rank_block){first, size, worker, (uint32_t)p};
            first += size;
            left -= size;
        }
    }
    rc = index_blocks(&map, err);
    if (rc < 0)
        return rc;
    undo = NULL;
    *ret_map = map;
    return 0;
}

static int check_block(const struct rank_block *blocks, size_t b, uint32_t workers,
                       struct drarun_error *err)
{
    const struct rank_block *block = &blocks[b], *before = b > 0 ? &blocks[b - 1] : NULL;
    uint32_t first = before ? before->first + before->count : 0;
    uint32_t app = before ? before->app : 0;
    if (block->first != first)
        return error_set(err, EPROTO, "rank map: block %zu starts at rank %u instead of %u", b,
                         block->first, first);
    if (block->count == 0 || block->count > RANKMAP_RANKS_MAX - first)
        return error_set(err, EPROTO, "rank map: block %zu has %u ranks", b, block->count);
    if (block->worker >= workers)
        return error_set(err, EPROTO, "rank map: block %zu is on worker %u of %u", b, block->worker,
                         workers);
    if (block->app != app && !(before && block->app == app + 1))
        return error_set(err, EPROTO, "rank map: block %zu is of program %u after program %u", b,
                         block->app, app);
    return 0;
}

int rankmap_from_blocks(const struct rank_block *blocks, size_t count, uint32_t workers,
                        struct rankmap *ret_map, struct drarun_error *err)
{
    if (workers == 0 || workers > RANKMAP_WORKERS_MAX)
        return error_set(err, EPROTO, "rank map: %u workers", workers);
    if (count == 0 || count > RANKMAP_RANKS_MAX)
        return error_set(err, EPROTO, "rank map: %zu blocks", count);
    for (size_t b = 0; b < count; b++) {
        int rc = check_block(blocks, b, workers, err);
        if (rc < 0)
            return rc;
    }
    struct rankmap map = {.workers = workers, .block_count = count};
    CLEANUP(rankmap_donep) struct rankmap *undo = &map;
    map.blocks = calloc(count, sizeof *map.blocks);
    if (!map.blocks)
        return error_set(err, ENOMEM, "rank map: out of memory");
    memcpy(map.blocks, blocks, count * sizeof *map.blocks);
    int rc = index_blocks(&map, err);
    if (rc < 0)
        return rc;
    undo = NULL;
    *ret_map = map;
    return 0;
}

/* ---- changing ---- */

/* Takes the blocks, on failure too. */
static int replace_blocks_take(struct rankmap *map, struct rank_block *blocks, size_t count,
                               struct drarun_error *err)
{
    struct rankmap next = {.workers = map->workers, .block_count = count, .blocks = blocks};
    int rc = index_blocks(&next, err);
    if (rc < 0) {
        rankmap_done(&next);
        return rc;
    }
    rankmap_done(map);
    *map = next;
    return 0;
}

int rankmap_append(struct rankmap *map, const struct rankmap *more, struct drarun_error *err)
{
    size_t count = map->block_count + more->block_count;
    assert(map->workers == more->workers);
    if (more->ranks > RANKMAP_RANKS_MAX - map->ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "more than %u ranks", RANKMAP_RANKS_MAX);
    struct rank_block *blocks = calloc(count, sizeof *blocks);
    if (!blocks)
        return error_set(err, ENOMEM, "rank map: out of memory");
    memcpy(blocks, map->blocks, map->block_count * sizeof *blocks);
    for (size_t b = 0; b < more->block_count; b++) {
        struct rank_block *block = &blocks[map->block_count + b];
        *block = more->blocks[b];
        block->first += map->ranks;
        block->app += map->apps;
    }
    return replace_blocks_take(map, blocks, count, err);
}

int rankmap_truncate(struct rankmap *map, size_t blocks)
{
    assert(blocks > 0 && blocks <= map->block_count);
    struct rank_block *kept = calloc(blocks, sizeof *kept);
    if (!kept)
        return -ENOMEM;
    memcpy(kept, map->blocks, blocks * sizeof *kept);
    return replace_blocks_take(map, kept, blocks, NULL);
}

/* ---- looking up ---- */

/* The block that holds rank: the last one that does not start behind it. */
static size_t find_block(const struct rankmap *map, uint32_t rank)
{
    assert(rank < map->ranks);
    size_t low = 0, high = map->block_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (map->blocks[middle].first <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct rank_place rankmap_place(const struct rankmap *map, uint32_t rank)
{
    size_t b = find_block(map, rank);
    const struct rank_block *block = &map->blocks[b];
    uint32_t app_first = map->app_firsts[block->app];
    return (struct rank_place){
        .rank = rank,
        .worker = block->worker,
        .local_rank = map->local_firsts[b] + (rank - block->first),
        .local_size = map->local_sizes[block->worker],
        .app = block->app,
        .app_rank = rank - app_first,
        .app_size = map->app_firsts[block->app + 1] - app_first,
    };
}

uint32_t rankmap_worker(const struct rankmap *map, uint32_t rank)
{
    return map->blocks[find_block(map, rank)].worker;
}

void rankmap_each_local(const struct rankmap *map, uint32_t worker,
                        void (*fn)(uint32_t rank, void *arg), void *arg)
{
    assert(worker < map->workers);
    for (uint32_t i = map->worker_heads[worker]; i < map->worker_heads[worker + 1]; i++) {
        const struct rank_block *block = &map->blocks[map->by_worker[i]];
        for (uint32_t n = 0; n < block->count; n++)
            fn(block->first + n, arg);
    }
}

/* ---- as text ---- */

struct peers_text {
    struct buf *out;
    const char *separator;
};

static void add_peer(uint32_t rank, void *arg)
{
    struct peers_text *text = arg;
    buf_printf(text->out, "%s%u", text->separator, rank);
    text->separator = ",";
}

void rankmap_peers_text(const struct rankmap *map, uint32_t worker, struct buf *out)
{
    struct peers_text text = {out, ""};
    rankmap_each_local(map, worker, add_peer, &text);
}

void rankmap_ppn_text(const struct rankmap *map, struct buf *out)
{
    const char *separator = "";
    for (uint32_t worker = 0; worker < map->workers; worker++) {
        if (map->local_sizes[worker] == 0)
            continue;
        buf_add_str(out, separator);
        rankmap_peers_text(map, worker, out);
        separator = ";";
    }
}

/* `nodes` consecutive nodes from `first` with `size` consecutive ranks each. */
struct node_run {
    uint32_t first, nodes, size;
};

static void add_run(const struct node_run *run, struct buf *out)
{
    if (run->nodes > 0)
        buf_printf(out, ",(%u,%u,%u)", run->first, run->nodes, run->size);
}

/* By worker: how many before it have ranks. The caller's; NULL without memory. */
static uint32_t *number_nodes(const struct rankmap *map)
{
    uint32_t *nodes = calloc(map->workers, sizeof *nodes), count = 0;
    for (uint32_t worker = 0; nodes && worker < map->workers; worker++) {
        nodes[worker] = count;
        count += map->local_sizes[worker] > 0;
    }
    return nodes;
}

/* Consecutive ranks on one worker, over programs; *b is the first block and then the next one. */
static struct node_run next_on_worker(const struct rankmap *map, const uint32_t *nodes, size_t *b)
{
    uint32_t worker = map->blocks[*b].worker;
    struct node_run run = {nodes[worker], 1, 0};
    while (*b < map->block_count && map->blocks[*b].worker == worker)
        run.size += map->blocks[(*b)++].count;
    return run;
}

void rankmap_pmi1_mapping(const struct rankmap *map, struct buf *out)
{
    struct node_run run = {0, 0, 0};
    cleanup_free uint32_t *nodes = number_nodes(map);
    if (!nodes) {
        out->failed = true;
        return;
    }
    buf_add_str(out, "(vector");
    for (size_t b = 0; b < map->block_count;) {
        struct node_run next = next_on_worker(map, nodes, &b);
        if (run.nodes > 0 && next.first == run.first + run.nodes && next.size == run.size) {
            run.nodes++;
            continue;
        }
        add_run(&run, out);
        run = next;
    }
    add_run(&run, out);
    buf_add_str(out, ")");
}
