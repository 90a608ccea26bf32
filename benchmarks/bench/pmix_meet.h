/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a job find each other without MPI: over the PMIx server of whoever started them.
 * One thread; every call but pmix_meet_open is collective over all ranks. */
#ifndef DRARUN_BENCH_PMIX_MEET_H
#define DRARUN_BENCH_PMIX_MEET_H

#include <stddef.h>

#include "drarun/error.h"

struct pmix_meet {
    unsigned rank, ranks;
    unsigned local_rank; /* on its node */
};

/* A program that nobody started is one rank of its own. */
int pmix_meet_open(struct pmix_meet *ret, struct drarun_error *err);
/* `bytes` of each rank, to all: all has ranks times that. */
int pmix_meet_share(const void *mine, void *all, size_t bytes, struct drarun_error *err);
int pmix_meet_wait(struct drarun_error *err);
/* After all ranks have come here. */
void pmix_meet_close(void);

#endif
