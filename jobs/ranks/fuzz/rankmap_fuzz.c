/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a Launch message: a number of workers, then four numbers a block, all 32 bits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/rankmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BLOCKS_MAX 256u
#define TEXT_RANKS_MAX 4096u /* longer texts are only slower */

static void check_place(const struct rankmap *map, uint32_t rank)
{
    struct rank_place place = rankmap_place(map, rank);
    if (place.rank != rank || place.worker >= map->workers || place.app >= map->apps ||
        place.local_rank >= place.local_size || place.app_rank >= place.app_size ||
        place.worker != rankmap_worker(map, rank))
        abort();
}

static void check_texts(const struct rankmap *map)
{
    struct buf text = BUF_INIT;
    rankmap_ppn_text(map, &text);
    rankmap_pmi1_mapping(map, &text);
    buf_done(&text);
}

static void check(const struct rankmap *map)
{
    uint64_t sum = 0;
    for (uint32_t worker = 0; worker < map->workers; worker++)
        sum += map->local_sizes[worker];
    if (sum != map->ranks || map->ranks > RANKMAP_RANKS_MAX)
        abort();
    for (size_t b = 0; b < map->block_count; b++) {
        check_place(map, map->blocks[b].first);
        check_place(map, map->blocks[b].first + map->blocks[b].count - 1);
    }
    if (map->ranks <= TEXT_RANKS_MAX)
        check_texts(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rank_block blocks[BLOCKS_MAX];
    struct rankmap map;
    uint32_t workers;
    if (size < sizeof workers)
        return 0;
    memcpy(&workers, data, sizeof workers);
    size_t count = (size - sizeof workers) / sizeof blocks[0];
    if (count > BLOCKS_MAX)
        count = BLOCKS_MAX;
    memcpy(blocks, data + sizeof workers, count * sizeof blocks[0]);
    if (rankmap_from_blocks(blocks, count, workers, &map, NULL) < 0)
        return 0;
    check(&map);
    rankmap_done(&map);
    return 0;
}
