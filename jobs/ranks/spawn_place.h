/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks run that a rank asks for while the job runs (MPI_Comm_spawn). Pure; the rules are in
 * docs/design/037-spawn.md. */
#ifndef DRARUN_JOBS_SPAWN_PLACE_H
#define DRARUN_JOBS_SPAWN_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/ranks/rankmap.h"

struct place_worker {
    const char *host; /* as its agent calls it */
    const char *node; /* of Kubernetes; NULL: none */
    uint32_t slots;   /* ranks that it may have */
    uint32_t used;    /* ranks that it has */
    bool gone;        /* takes no more ranks */
};

struct place_program {
    uint32_t count;     /* at least 1 */
    char *const *hosts; /* the workers' hosts that it may run on; each may end in ":N" */
    size_t host_count;  /* 0: any */
};

/* The slots of a worker when the user has said nothing: its CPUs, or its ranks if they are more. */
uint32_t spawn_slots(uint32_t ranks, uint32_t cpus);

/* The programs in their order fill the free slots of the workers in theirs, as the job's first
 * ranks do. What remains is refused with -ENOSPC, or with oversubscribe shared out evenly. -ENOENT:
 * no worker has such a host. Kind DRARUN_ERR_USAGE with what to do, for more slots `cure`; the
 * map's ranks and programs count from 0. */
int spawn_place(const struct place_worker *workers, uint32_t worker_count,
                const struct place_program *programs, size_t program_count, bool oversubscribe,
                const char *cure, struct rankmap *ret_map, struct drarun_error *err);

#endif
