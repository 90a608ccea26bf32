/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank runs on which worker, and what its neighbours are. Pure; read-only after building, so
 * any thread may read it. Ranks are numbered by program, then by worker: consecutive ranks of a
 * program fill a worker before the next one starts ("block" order, mpirun's --map-by slot). */
#ifndef DRARUN_JOBS_RANKMAP_H
#define DRARUN_JOBS_RANKMAP_H

#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define RANKMAP_RANKS_MAX 1000000u
#define RANKMAP_WORKERS_MAX 65536u

/* `count` consecutive ranks of program `app` on one worker. */
struct rank_block {
    uint32_t first;
    uint32_t count;
    uint32_t worker;
    uint32_t app;
};

struct rankmap {
    struct rank_block *blocks; /* by ascending first rank, without holes */
    size_t block_count;
    uint32_t ranks;
    uint32_t workers;
    uint32_t apps;
    uint32_t *local_sizes; /* by worker: its number of ranks */
    /* derived, so that look-ups do not walk all blocks */
    uint32_t *local_firsts; /* by block: the local rank of its first rank */
    uint32_t *app_firsts;   /* by program: its first rank; one more entry holds `ranks` */
    uint32_t *by_worker;    /* block indices by worker, then by rank */
    uint32_t
        *worker_heads; /* by worker: where its indices start in by_worker; one more at the end */
};

/* What one rank is. */
struct rank_place {
    uint32_t rank;
    uint32_t worker;
    uint32_t local_rank; /* among the ranks of its worker, by rank */
    uint32_t local_size;
    uint32_t app;
    uint32_t app_rank; /* within its program */
    uint32_t app_size;
};

/* counts[a]: ranks of program a, each at least 1. per_worker: the most ranks of one worker, 0 for
 * an even share (the first workers get one more when it does not divide). With fewer ranks than
 * workers the last workers have none. -EINVAL with what does not fit, kind DRARUN_ERR_USAGE. */
int rankmap_build(const uint32_t *counts, size_t apps, uint32_t workers, uint32_t per_worker,
                  struct rankmap *ret_map, struct drarun_error *err);

/* The same with the workers in the order of their ranks; NULL: by number. */
int rankmap_build_ordered(const uint32_t *counts, size_t apps, uint32_t workers,
                          uint32_t per_worker, const uint32_t *order, struct rankmap *ret_map,
                          struct drarun_error *err);

/* The ranks of a program and the workers that it has for itself. */
struct rank_part {
    uint32_t ranks, workers; /* at least 1 each */
};

/* Each program on workers of its own, which follow those of the program before it, an even share on
 * each (the first get one more when it does not divide). order: as above, of all workers.
 * -EINVAL with what does not fit, kind DRARUN_ERR_USAGE. */
int rankmap_build_parts(const struct rank_part *parts, size_t count, const uint32_t *order,
                        struct rankmap *ret_map, struct drarun_error *err);

/* From blocks that came over the wire: checks order, holes, ranges and limits (-EPROTO), and that
 * programs are numbered from 0 in the order of their ranks. Copies. */
int rankmap_from_blocks(const struct rank_block *blocks, size_t count, uint32_t workers,
                        struct rankmap *ret_map, struct drarun_error *err);

/* The ranks and programs of `more` behind those of map, in place: both keep their order. The
 * workers are the same. -EINVAL beyond RANKMAP_RANKS_MAX; map is unchanged on failure. */
int rankmap_append(struct rankmap *map, const struct rankmap *more, struct drarun_error *err);
/* Undoes the last append: map has its first `blocks` blocks again, at least one. -ENOMEM. */
int rankmap_truncate(struct rankmap *map, size_t blocks);

void rankmap_done(struct rankmap *map);

/* rank must be below map->ranks. Logarithmic in blocks. */
struct rank_place rankmap_place(const struct rankmap *map, uint32_t rank);
uint32_t rankmap_worker(const struct rankmap *map, uint32_t rank);

/* The ranks of a worker, ascending; calls fn for each. */
void rankmap_each_local(const struct rankmap *map, uint32_t worker,
                        void (*fn)(uint32_t rank, void *arg), void *arg);

/* "0,1,2;3,4": ranks by worker as PMIx_generate_ppn wants them (PMIx 4.1, PMIX_PROC_MAP). Workers
 * without ranks are left out, since libpmix drops empty parts. */
void rankmap_ppn_text(const struct rankmap *map, struct buf *out);
/* "0,1,2": the ranks of one worker (PMIX_LOCAL_PEERS). */
void rankmap_peers_text(const struct rankmap *map, uint32_t worker, struct buf *out);
/* "(vector,(0,4,2),(4,1,1))": (first node, nodes, ranks a node) runs, as PMI-1's
 * PMI_process_mapping (MPICH src/pmi, doc/wiki/design/PMI_process_mapping); when ranks are not in
 * worker order ("several programs"), as many vectors as needed. Nodes are numbered over the workers
 * that have ranks: MPICH 4 and Intel MPI allocate by the highest number. Without memory out has
 * failed. */
void rankmap_pmi1_mapping(const struct rankmap *map, struct buf *out);

#endif
