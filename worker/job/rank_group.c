/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/job/rank_group.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

int rank_group_check_apps(Drarun__Wire__App *const *apps, size_t count, struct drarun_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (apps[i]->n_argv == 0 || !apps[i]->argv[0][0])
            return error_kind(err, DRARUN_ERR_SPEC, EPROTO,
                              "launch message: a program without a name");
    return 0;
}

int rank_group_map(Drarun__Wire__Block *const *wire, size_t count, size_t apps, uint32_t workers,
                   struct rankmap *ret_map, struct drarun_error *err)
{
    cleanup_free struct rank_block *blocks = calloc(count + 1, sizeof *blocks);
    if (!blocks)
        return error_set(err, ENOMEM, "out of memory for the job's ranks");
    for (size_t i = 0; i < count; i++) {
        if (wire[i]->app >= apps)
            return error_kind(err, DRARUN_ERR_SPEC, EPROTO,
                              "launch message: ranks of an unknown program");
        blocks[i] =
            (struct rank_block){wire[i]->first, wire[i]->count, wire[i]->worker, wire[i]->app};
    }
    return rankmap_from_blocks(blocks, count, workers, ret_map, err);
}

int rank_group_map_app(const struct rankmap *job, uint32_t app, struct rankmap *ret_map,
                       struct drarun_error *err)
{
    cleanup_free struct rank_block *blocks = calloc(job->block_count + 1, sizeof *blocks);
    size_t count = 0;
    if (!blocks)
        return error_set(err, ENOMEM, "out of memory for the job's ranks");
    for (size_t b = 0; b < job->block_count; b++)
        if (job->blocks[b].app == app)
            blocks[count++] = (struct rank_block){job->blocks[b].first - job->app_firsts[app],
                                                  job->blocks[b].count, job->blocks[b].worker, 0};
    return rankmap_from_blocks(blocks, count, job->workers, ret_map, err);
}

void rank_group_free(struct rank_group *group)
{
    if (!group)
        return;
    rankmap_done(&group->map);
    if (group->wire)
        drarun__wire__group__free_unpacked(group->wire, NULL);
    free(group);
}
